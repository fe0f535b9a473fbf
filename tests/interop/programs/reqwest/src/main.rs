//! TLS is what reqwest can be built with: that of the system, or rustls with the system's roots or those of the crate.
use reqwest::blocking::{Body, Client};
use std::{env, fs, io, process};

fn client(tls: &str) -> reqwest::Result<Client> {
    let builder = Client::builder().timeout(None);
    match tls {
        "native" => builder.use_native_tls(),
        "rustls" => builder.use_rustls_tls().tls_built_in_webpki_certs(false),
        _ => builder.use_rustls_tls().tls_built_in_native_certs(false),
    }
    .build()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = env::args().collect();
    let mut request = client(&words[1])?.request(words[2].parse()?, &words[3]).bearer_auth(env::var("KEY")?);
    if let Some(file) = words.get(4) {
        request = request.header("Content-Type", "application/octet-stream").body(Body::from(fs::File::open(file)?));
    }
    let mut answer = request.send().unwrap_or_else(|why| {
        eprintln!("{why:?}");
        process::exit(1)
    });
    let status = answer.status().as_u16();
    io::copy(&mut answer, &mut io::stdout())?;
    eprintln!("status {status}");
    Ok(())
}
