"""Commands whose words say all there is to know, one line each."""

from __future__ import annotations

from collections.abc import Mapping

from keryx.tools.shell.rules.deeds import names
from keryx.tools.shell.rules.facts import ALWAYS, Fact

_EXECUTES = "runs a command on every file that it finds"
_FILTER = "runs a program on what it reads"

HARMLESS = names(
    """true false : echo pwd whoami id date uname arch seq sleep yes basename dirname expr
    test [ which whereis type nproc uptime free df tty locale getconf tput clear w who users
    groups logname ps pgrep jobs wait exit return break continue shift umask ulimit times let
    unset getopts help factor cal bc tsort lsb_release sw_vers lscpu lsblk lsof vmstat iostat
    man info apropos whatis set shopt printf read mapfile readarray numfmt stty dmesg
    getent hostid ipcs mktemp"""
)
"""They change nothing but the shell that runs them."""

READERS: Mapping[str, Fact] = {
    **dict.fromkeys(
        names(
            """cat tac nl rev wc paste join comm cmp md5sum sha1sum sha224sum sha256sum sha384sum
            sha512sum b2sum cksum sum shasum strings file readlink realpath zcat bzcat xzcat
            zstdcat zless nm readelf size cloc tokei bat ldd objdump otool hexyl"""
        ),
        Fact("reads"),
    ),
    "ls": Fact(
        "reads", here=True, shallow=True, takes="-I --ignore -w --width", deep="-R --recursive"
    ),
    "dir": Fact("reads", here=True, shallow=True, deep="-R --recursive"),
    "vdir": Fact("reads", here=True, shallow=True, deep="-R --recursive"),
    "exa": Fact("reads", here=True, takes="-L --level -I --ignore-glob"),
    "eza": Fact("reads", here=True, takes="-L --level -I --ignore-glob"),
    "tree": Fact("reads", here=True, takes="-L -I -P --filelimit", writing="-o"),
    "du": Fact("reads", here=True, takes="-d --max-depth --exclude -t --threshold -B --block-size"),
    "stat": Fact("reads", shallow=True, takes="-c --format -f --printf"),
    "head": Fact("reads", takes="-n -c --lines --bytes"),
    "tail": Fact("reads", takes="-n -c -s --lines --bytes --pid"),
    "less": Fact("reads", takes="-p -x", writing="-o -O --log-file"),
    "more": Fact("reads", takes="-n"),
    "cut": Fact("reads", takes="-d -f -c -b --delimiter --fields --output-delimiter"),
    "tr": Fact("text"),
    "fold": Fact("reads", takes="-w --width"),
    "fmt": Fact("reads", takes="-w --width"),
    "pr": Fact("reads", takes="-l -w -h"),
    "expand": Fact("reads", takes="-t"),
    "unexpand": Fact("reads", takes="-t"),
    "column": Fact("reads", takes="-s -o -c -N"),
    "od": Fact("reads", takes="-A -t -N -j"),
    "hexdump": Fact("reads", takes="-n -s -e"),
    "diff": Fact("reads", takes="-U -C -x -I --exclude --label", deep="-r --recursive"),
    "sort": Fact(
        "reads",
        takes="-k -t -S -T --key --field-separator --parallel",
        reading="--files0-from",
        writing="-o --output",
        risky={"--compress-program": _FILTER},
    ),
    "shuf": Fact("reads", takes="-n -i", writing="-o --output"),
    "iconv": Fact("reads", takes="-f -t", writing="-o --output"),
    "base64": Fact("reads", takes="-w --wrap"),
    "base32": Fact("reads", takes="-w --wrap"),
    **dict.fromkeys(
        names("grep egrep fgrep zgrep ack ag"),
        Fact(
            "reads",
            skip=1,
            takes="""-e -A -B -C -m -d --regexp --include --exclude --exclude-dir --context
            --after-context --before-context --max-count --color --ignore""",
            reading="-f --file",
            deep="-r -R --recursive --dereference-recursive",
        ),
    ),
    "rg": Fact(
        "reads",
        here=True,
        skip=1,
        takes="""-e -A -B -C -m -g -t -T -M -r -j --regexp --glob --iglob --type --type-not
        --max-count --context --after-context --before-context --max-depth --replace --sort""",
        reading="-f --file --ignore-file",
        deep=ALWAYS,
        risky={"--pre": _FILTER, "--hostname-bin": _FILTER},
    ),
    **dict.fromkeys(
        names("fd fdfind"),
        Fact(
            "reads",
            here=True,
            skip=1,
            takes="-e -t -d -E -g --extension --type --max-depth --exclude",
            risky=dict.fromkeys(("-x", "-X", "--exec", "--exec-batch"), _EXECUTES),
        ),
    ),
    "locate": Fact("text"),
    "jq": Fact("reads", skip=1, takes="--arg --argjson --indent", reading="-f --from-file"),
}

CHANGERS: Mapping[str, Fact] = {
    "touch": Fact("writes", takes="-d -t --date --time", reading="-r --reference"),
    "mkdir": Fact("writes", takes="-m --mode"),
    "tee": Fact("writes", empties=True),
    "sponge": Fact("writes"),
    "truncate": Fact("writes", empties=True, takes="-s --size", reading="-r --reference"),
    "fallocate": Fact("writes", takes="-l -o"),
    "mkfifo": Fact("writes", takes="-m"),
    "mknod": Fact("writes", level="high", why="makes a device"),
    "split": Fact("writes", takes="-b -l -n -d -a"),
    "rm": Fact("deletes"),
    "rmdir": Fact("deletes"),
    "unlink": Fact("deletes"),
    "trash": Fact("deletes"),
    "srm": Fact("deletes"),
    "shred": Fact("deletes", takes="-n -s"),
    "cpio": Fact("writes", here=True, takes="-H -C", writing="-D --directory -O -F"),
    "ar": Fact("writes", skip=1, writing="--output"),
    **dict.fromkeys(names("7z 7za 7zr"), Fact("writes", skip=1, writing="-o", takes="-p -x -i")),
    "xmllint": Fact("reads", takes="--xpath --encode", writing="--output -o"),
    "strip": Fact("writes", takes="-K -N", writing="-o"),
    "cp": Fact(
        "copies",
        empties=True,
        takes="-S --suffix",
        writing="-t --target-directory",
        deep="-r -R -a --recursive",
    ),
    "mv": Fact("moves", takes="-S --suffix", writing="-t --target-directory"),
    "ln": Fact("links", takes="-S --suffix", writing="-t --target-directory"),
    "link": Fact("links"),
    "install": Fact("copies", empties=True, takes="-m -o -g -S", writing="-t --target-directory"),
    "chown": Fact("writes", skip=1, takes="--from"),
    "chgrp": Fact("writes", skip=1),
    "chattr": Fact("writes", skip=1),
    "setfacl": Fact("writes", takes="-m -x"),
    "xattr": Fact("writes", takes="-w -d"),
    "patch": Fact(
        "writes", here=True, takes="-p -d", reading="-i --input", writing="-o -d --directory"
    ),
    **dict.fromkeys(
        names("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 dos2unix unix2dos"),
        Fact("writes", takes="-T -S --suffix", writing="-o"),
    ),
}
"""They change the files that they name."""

_MACHINE = "changes the machine itself"
_SERVICES = "controls the services of this machine"
_DISKS = "works on disks and file systems"
_USERS = "changes users and their rights"
_OTHERS = "ends processes by their name"
_REMOTE = "works on another machine"
_FIREWALL = "changes the rules of the network"
_LATER = "makes commands run at a later time"

HIGH: Mapping[str, str] = {
    **dict.fromkeys(names("shutdown reboot halt poweroff init telinit kexec"), "stops the machine"),
    **dict.fromkeys(
        names("""fdisk sfdisk gdisk parted wipefs mkswap swapon swapoff losetup cryptsetup lvm
        pvcreate vgcreate lvcreate lvremove mdadm mount umount fsck blkdiscard hdparm diskutil
        zfs zpool btrfs debugfs tune2fs"""),
        _DISKS,
    ),
    **dict.fromkeys(
        names("""useradd userdel usermod adduser deluser groupadd groupdel groupmod passwd
        chpasswd visudo vipw chsh chfn gpasswd dscl"""),
        _USERS,
    ),
    **dict.fromkeys(
        names("iptables ip6tables nft ufw firewall-cmd pfctl route ifconfig"), _FIREWALL
    ),
    **dict.fromkeys(
        names("""sysctl modprobe insmod rmmod setenforce hostnamectl timedatectl ldconfig
        update-alternatives chroot unshare nsenter setcap csrutil nvram defaults update-grub
        grub-install efibootmgr loginctl"""),
        _MACHINE,
    ),
    **dict.fromkeys(names("service launchctl rc-service initctl chkconfig"), _SERVICES),
    **dict.fromkeys(names("pkill killall killall5 skill xkill fuser"), _OTHERS),
    **dict.fromkeys(names("at batch"), _LATER),
    **dict.fromkeys(names("powershell pwsh cmd.exe powershell.exe"), "runs another shell"),
    **dict.fromkeys(names("vssadmin bcdedit"), _MACHINE),
    **dict.fromkeys(names("compgen complete bind"), "makes the shell run a text"),
    **dict.fromkeys(names("xdg-open open gio"), "starts whatever program belongs to a file"),
    "alias": "gives a command another meaning",
    "enable": "changes what builtin commands mean",
    "ed": "runs an editor's script, which may start commands",
    "gdb": "takes control of a process",
    "security": "reads the keys of this user",
    "secret-tool": "reads the keys of this user",
    "pass": "reads the keys of this user",
    "gpg": "uses the keys of this user",
    "ssh-keygen": "makes or changes keys",
    "ssh-add": "uses the keys of this user",
}
"""High whatever the arguments are."""

REMOTE: Mapping[str, str] = {
    **dict.fromkeys(names("ssh scp sftp mosh telnet ftp lftp rsh rlogin autossh sshpass"), _REMOTE),
    **dict.fromkeys(names("nc ncat netcat socat"), "opens a raw connection"),
    **dict.fromkeys(names("mail sendmail mutt msmtp"), "sends mail"),
    **dict.fromkeys(names("ngrok cloudflared"), "opens this machine to the network"),
}
"""High too, and over the network."""

PROBES = names("ping ping6 dig nslookup host traceroute tracepath mtr whois nmap curlie")
"""They reach out, and change nothing."""

SHOWING = names("printenv")
"""They print the environment."""

VERSIONS = names("--version --help -V -version -help version help")
"""An argument that alone makes any known command harmless, if it is the only one."""
