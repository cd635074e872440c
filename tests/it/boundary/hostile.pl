#!/usr/bin/perl
# A hostile agent: tries every way to reach the service that runs it, and prints the names of those that
# worked. The folder of the test is in $PLACE; `pids` in it names the service, its process holder and a
# program of another agent.
use Fcntl;
use Socket;
$| = 1;
my $here = $ENV{PLACE};
my $tmp = $ENV{TMPDIR} || '/tmp';
my ($service, $holder, $other) = split / /, slurp("$here/pids");
my $state = "$here/state/algonius";
my $folder = $ENV{CONFIG_FOLDER};
my $config = "$folder/supervisor.toml";
# Other tests leave such files in the same folder, and numbers of processes are used again.
my $mine = "$tmp/mine-$$-" . int rand 1e12;

sub slurp {
    open(my $file, '<', $_[0]) or return '';
    local $/;
    my $text = <$file>;
    return defined $text ? $text : '';
}
sub spill {
    open(my $file, '>', $_[0]) or return 0;
    print {$file} $_[1] or return 0;
    return close $file;
}
sub has { my ($text, $wanted) = @_; return index($text, $wanted) >= 0 }
sub is_token { return $_[0] =~ /^[0-9a-f]{64}/ }
sub syscalled { my $result = syscall(@_); return $result >= 0 }
sub traced {
    my $pid = shift;
    return 0 unless $pid && syscalled(101, 16, int $pid, 0, 0);    # PTRACE_ATTACH
    waitpid($pid, 0);
    syscall(101, 17, int $pid, 0, 0);                              # PTRACE_DETACH
    return 1;
}
sub answered {
    my ($type, $address) = @_;
    socket(my $socket, PF_UNIX, $type, 0) or return 0;
    connect($socket, $address) or return 0;
    send($socket, "\x06", 0);
    my $ready = '';
    vec($ready, fileno($socket), 1) = 1;
    select($ready, undef, undef, 0.5) or return 0;
    return defined(recv($socket, my $answer, 100, 0)) && length $answer;
}

my %ways = (
    'read the token' => sub { is_token(slurp("$state/token")) },
    'read the token by a link' => sub { symlink("$state/token", $mine); is_token(slurp($mine)) },
    'read the token by a hard link' => sub { link("$state/token", "$mine-l") && is_token(slurp("$mine-l")) },
    'read the token by its own root' => sub { is_token(slurp("/proc/self/root$state/token")) },
    'read the token by the root of the service' => sub { is_token(slurp("/proc/$service/root$state/token")) },
    'read the token by the folder of the service' =>
        sub { is_token(slurp("/proc/$service/cwd/state/algonius/token")) },
    'open a file of the service' => sub { grep { length slurp($_) } glob "/proc/$service/fd/*" },
    'change the mode of the token' => sub { chmod(0644, "$state/token") && (stat "$state/token")[2] & 044 },
    'replace the token' => sub { spill("$tmp/token", 'x') && rename("$tmp/token", "$state/token") },
    'remove the token' => sub { unlink "$state/token" },
    'read the ledger' => sub { grep { /ledger|\.db/ && length slurp($_) } glob "$state/*" },
    'read the home of another agent' => sub { has(slurp("$state/homes/other/login"), 'login') },
    'change the mode of a secret file' => sub { chmod(0666, "$here/secrets/key") },
    'read the key of sealed inputs' => sub {
        grep { length slurp($_) } "$here/secrets/inputs.key", glob "$here/run/algonius/inputs-*.key";
    },
    'read a secret file' => sub { has(slurp("$here/secrets/key"), 'first-secret') },
    'read a secret of the configuration' => sub { has(slurp($config), 'second-secret') },
    'append to the configuration' => sub {
        open(my $file, '>>', $config) or return 0;
        print {$file} "# changed\n";
        return close $file;
    },
    'replace the configuration' => sub {
        spill("$folder/supervisor.new", '') && rename("$folder/supervisor.new", $config);
    },
    'remove the configuration' => sub { unlink $config },
    'empty the configuration' => sub { truncate($config, 0) },
    'move the folder of the service away' => sub { my $real = readlink "$here/state"; rename($real, "$real-moved") },
    'add a preset' => sub { mkdir("$folder/presets"); spill("$folder/presets/new.toml", "[about]\n") },
    'add variables to the unit' => sub { spill("$folder/environment", "LD_PRELOAD=x\n") },
    'read the input of another caller' => sub {
        grep { has(slurp($_), 'input of another') }
            map { glob "$here/run/algonius/$_" } '*/*', '*/*/*', '*/*/*/*';
    },
    'read the environment of the service' => sub { length slurp("/proc/$service/environ") },
    'read the environment of the process holder' => sub { length slurp("/proc/$holder/environ") },
    'read the environment of another agent' => sub { has(slurp("/proc/$other/environ"), 'third-secret') },
    'read the memory of another agent' => sub { open(my $memory, '<', "/proc/$other/mem") },
    'trace the service' => sub { traced($service) },
    'trace another agent' => sub { traced($other) },
    'signal the service' => sub { kill 0, $service },
    'signal the process holder' => sub { kill 0, $holder },
    'signal another agent' => sub { kill 0, $other },
    'speak to the process holder' => sub {
        grep { answered(SOCK_SEQPACKET, pack_sockaddr_un($_)) } glob "$here/run/algonius/w-*.sock";
    },
    'make a socket beside it' => sub {
        socket(my $socket, PF_UNIX, SOCK_STREAM, 0) or return 0;
        return bind($socket, pack_sockaddr_un("$here/run/algonius/w-fake.sock"));
    },
    'connect to an abstract socket' => sub {
        socket(my $socket, PF_UNIX, SOCK_STREAM, 0) or return 0;
        return connect($socket, pack('Sxa*', AF_UNIX, "algonius-boundary-$ENV{ABSTRACT}"));
    },
    'connect to a service manager' => sub {
        socket(my $socket, PF_UNIX, SOCK_STREAM, 0) or return 0;
        return connect($socket, pack_sockaddr_un("$here/run/bus"));
    },
    'make a device' => sub { syscalled(133, "$tmp/device-$$", 0060600, 0x0100) },    # mknod
    'read a disk' => sub { grep { length slurp_some($_) } glob '/dev/[vsh]d[a-z] /dev/nvme*' },
    'read the memory of the kernel' => sub { length slurp_some('/proc/kcore') },
    'mount' => sub { system("mount -t tmpfs none '$here/home' 2>/dev/null") == 0 },
    'uncover what is hidden' => sub {
        system("umount '$state' 2>/dev/null") == 0 || system("unshare -Urm umount '$state' 2>/dev/null") == 0;
    },
);
sub slurp_some {
    open(my $file, '<', $_[0]) or return '';
    sysread($file, my $some, 16);
    return defined $some ? $some : '';
}

# What destroys comes last, and the prints in between help to find the way that hangs.
my @last = ('change the mode of the token', 'replace the token', 'remove the token',
    'move the folder of the service away', 'empty the configuration', 'replace the configuration',
    'remove the configuration');
my %is_last = map { $_ => 1 } @last;
my @worked = grep { $ways{$_}->() } (grep { !$is_last{$_} } sort keys %ways), @last;
print join(', ', @worked), "\n";
