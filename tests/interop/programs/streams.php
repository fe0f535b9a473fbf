<?php
// What a program sets is added to the default context.
[, $method, $url] = $argv;
$http = ['method' => $method, 'ignore_errors' => true, 'protocol_version' => 1.1,
         'header' => ['Authorization: Bearer ' . getenv('KEY'), 'Connection: close']];
if (isset($argv[3])) {
    $http['content'] = file_get_contents($argv[3]);
    $http['header'][] = 'Content-Type: application/octet-stream';
}
stream_context_set_default(['http' => $http]);
$answer = fopen($url, 'rb');
if (!$answer) exit(1);
while (($line = fgets($answer, 65536)) !== false) fwrite(STDOUT, $line);
$lines = preg_grep('{^HTTP/}', stream_get_meta_data($answer)['wrapper_data']);
fwrite(STDERR, 'status ' . explode(' ', end($lines))[1] . "\n");
