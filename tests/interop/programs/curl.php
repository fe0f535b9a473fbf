<?php
[, $method, $url] = $argv;
$headers = ['Authorization: Bearer ' . getenv('KEY')];
if (getenv('EXPECT')) $headers[] = 'Expect: 100-continue';
$curl = curl_init($url);
curl_setopt_array($curl, [CURLOPT_CUSTOMREQUEST => $method, CURLOPT_FOLLOWLOCATION => true]);
if (isset($argv[3])) {
    $headers[] = 'Content-Type: application/octet-stream';
    curl_setopt_array($curl, [CURLOPT_UPLOAD => true, CURLOPT_INFILE => fopen($argv[3], 'rb'),
                              CURLOPT_INFILESIZE => filesize($argv[3])]);
}
curl_setopt($curl, CURLOPT_HTTPHEADER, $headers);
curl_setopt($curl, CURLOPT_WRITEFUNCTION, function ($curl, $piece) {
    return fwrite(STDOUT, $piece);
});
if (!curl_exec($curl)) {
    fwrite(STDERR, curl_error($curl) . "\n");
    exit(1);
}
fwrite(STDERR, 'status ' . curl_getinfo($curl, CURLINFO_RESPONSE_CODE) . "\n");
