use strict;
use warnings;
use HTTP::Tiny;

my ($method, $url, $file) = @ARGV;
$| = 1;
binmode STDOUT;
my %options = (headers => {Authorization => "Bearer $ENV{KEY}"}, data_callback => sub { print $_[0] });
if ($file) {
    open my $in, '<:raw', $file or die $!;
    $options{headers}{'Content-Length'} = -s $file;
    $options{content} = sub { read($in, my $piece, 65536); $piece };
}
my $answer = HTTP::Tiny->new(timeout => 60)->request($method, $url, \%options);
print $answer->{content} // '';
print STDERR "status $answer->{status}\n";
