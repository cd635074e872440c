#!/usr/bin/perl
# Tries every way to a network, and prints the names of those that worked. The folder of the test is in $PLACE; `port`
# in it is the port of a TCP and of a UDP socket on loopback.
use Errno;
use Socket;
$| = 1;
my $here = $ENV{PLACE};
open(my $file, '<', "$here/port") or die;
my $peer = pack_sockaddr_in(<$file>, INADDR_LOOPBACK);

sub made { my ($family, $type, $protocol) = @_; socket(my $socket, $family, $type, $protocol) or return; return $socket }
sub connected { my $socket = made(PF_INET, SOCK_STREAM, shift) or return; return connect($socket, $peer) }
sub sent {
    my ($type, $flags) = @_;
    my $socket = made(PF_INET, $type, 0) or return;
    return defined send($socket, 'heard', $flags, $peer);
}
my $request_key = `uname -m` =~ /aarch64/ ? 218 : 249;
my %ways = (
    'TCP' => sub { connected(0) },
    'Multipath TCP' => sub { connected(262) },
    'TCP Fast Open' => sub { sent(SOCK_STREAM, 0x20000000) },
    'UDP' => sub { sent(SOCK_DGRAM, 0) },
    'TCP server' => sub { my $socket = made(PF_INET, SOCK_STREAM, 0) or return; return listen($socket, 1) },
    'IPv6 socket' => sub { made(10, SOCK_DGRAM, 0) },
    'raw socket' => sub { made(PF_INET, SOCK_RAW, 1) },
    'packet socket' => sub { made(17, SOCK_DGRAM, 0) },
    'virtual machine socket' => sub { made(40, SOCK_STREAM, 0) },
    'pair of internet sockets' => sub { socketpair(my $left, my $right, PF_INET, SOCK_STREAM, 0) || $!{EOPNOTSUPP} },
    'message to other processes' => sub { made(16, SOCK_RAW, 2) },
    'list of sockets' => sub { made(16, SOCK_RAW, 4) },
    'name lookup by the kernel' => sub {
        my ($type, $name) = ("dns_resolver\0", "a:name.example.org\0");
        syscall($request_key, $type, $name, 0, -3) >= 0 || !$!{ENOSYS};
    },
    'capability to mount' => sub {
        open(my $status, '<', '/proc/self/status') or return;
        return grep { /^CapEff:\s*(\w+)/ && hex($1) & 1 << 21 } <$status>;
    },
    'io_uring' => sub { syscall(425, 8, my $parameters = "\0" x 120) >= 0 },
);
for my $gate (glob "$here/gate-*") {
    my $name = $gate =~ s/.*-/32-bit /r;
    $ways{$name} = sub { system($gate) == 0 };
}
print map { "$_\n" } grep { $ways{$_}->() } sort keys %ways;
made(PF_UNIX, SOCK_STREAM, 0) or print "no Unix socket: $!\n";
socketpair(my $left, my $right, PF_UNIX, SOCK_STREAM, 0) or print "no pair of sockets: $!\n";
made(16, SOCK_RAW, 0) or print "no list of network devices: $!\n";
print "done\n";
