use strict;
use warnings;
use HTTP::Request;
use LWP::UserAgent;

my ($method, $url, $file) = @ARGV;
$| = 1;
binmode STDOUT;
my $request = HTTP::Request->new($method, $url, [Authorization => "Bearer $ENV{KEY}"]);
if ($file) {
    open my $in, '<:raw', $file or die $!;
    $request->header('Content-Length' => -s $file, 'Content-Type' => 'application/octet-stream');
    $request->content(sub { read($in, my $piece, 65536); $piece });
}
my $answer = LWP::UserAgent->new(timeout => 60)->request($request, sub { print $_[0] }, 4096);
print $answer->content if $answer->is_error;
print STDERR 'status ', $answer->code, "\n";
