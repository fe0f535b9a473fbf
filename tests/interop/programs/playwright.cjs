const {chromium} = require("playwright-core");

(async () => {
  const [executablePath, url] = process.argv.slice(2);
  const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--disable-background-networking"]});
  const page = await browser.newPage();
  await page.goto(url);
  await page.waitForFunction(() => !document.getElementById("out").textContent.startsWith("nothing"));
  console.log(await page.textContent("#out"));
  await browser.close();
})();
