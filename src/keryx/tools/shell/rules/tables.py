"""Commands whose words say all there is to know, one line each."""

from __future__ import annotations

from collections.abc import Mapping

from keryx.tools.shell.rules.actions import names
from keryx.tools.shell.rules.rule_rows import ALWAYS, RuleRow

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

READERS: Mapping[str, RuleRow] = {
    **dict.fromkeys(
        names(
            """cat tac nl rev wc paste join comm cmp md5sum sha1sum sha224sum sha256sum sha384sum
            sha512sum b2sum cksum sum shasum strings file readlink realpath zcat bzcat xzcat
            zstdcat zless nm readelf size cloc tokei bat ldd objdump otool hexyl"""
        ),
        RuleRow("reads"),
    ),
    "ls": RuleRow(
        "reads", here=True, shallow=True, takes="-I --ignore -w --width", deep="-R --recursive"
    ),
    "dir": RuleRow("reads", here=True, shallow=True, deep="-R --recursive"),
    "vdir": RuleRow("reads", here=True, shallow=True, deep="-R --recursive"),
    "exa": RuleRow("reads", here=True, takes="-L --level -I --ignore-glob"),
    "eza": RuleRow("reads", here=True, takes="-L --level -I --ignore-glob"),
    "tree": RuleRow("reads", here=True, takes="-L -I -P --filelimit", writing="-o"),
    "du": RuleRow(
        "reads", here=True, takes="-d --max-depth --exclude -t --threshold -B --block-size"
    ),
    "stat": RuleRow("reads", shallow=True, takes="-c --format -f --printf"),
    "head": RuleRow("reads", takes="-n -c --lines --bytes"),
    "tail": RuleRow("reads", takes="-n -c -s --lines --bytes --pid"),
    "less": RuleRow("reads", takes="-p -x", writing="-o -O --log-file"),
    "more": RuleRow("reads", takes="-n"),
    "cut": RuleRow("reads", takes="-d -f -c -b --delimiter --fields --output-delimiter"),
    "tr": RuleRow("text"),
    "fold": RuleRow("reads", takes="-w --width"),
    "fmt": RuleRow("reads", takes="-w --width"),
    "pr": RuleRow("reads", takes="-l -w -h"),
    "expand": RuleRow("reads", takes="-t"),
    "unexpand": RuleRow("reads", takes="-t"),
    "column": RuleRow("reads", takes="-s -o -c -N"),
    "od": RuleRow("reads", takes="-A -t -N -j"),
    "hexdump": RuleRow("reads", takes="-n -s -e"),
    "diff": RuleRow("reads", takes="-U -C -x -I --exclude --label", deep="-r --recursive"),
    "sort": RuleRow(
        "reads",
        takes="-k -t -S -T --key --field-separator --parallel",
        reading="--files0-from",
        writing="-o --output",
        risky={"--compress-program": _FILTER},
    ),
    "shuf": RuleRow("reads", takes="-n -i", writing="-o --output"),
    "iconv": RuleRow("reads", takes="-f -t", writing="-o --output"),
    "base64": RuleRow("reads", takes="-w --wrap"),
    "base32": RuleRow("reads", takes="-w --wrap"),
    **dict.fromkeys(
        names("grep egrep fgrep zgrep ack ag"),
        RuleRow(
            "reads",
            skip=1,
            takes="""-e -A -B -C -m -d --regexp --include --exclude --exclude-dir --context
            --after-context --before-context --max-count --color --ignore""",
            reading="-f --file",
            deep="-r -R --recursive --dereference-recursive",
        ),
    ),
    "rg": RuleRow(
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
        RuleRow(
            "reads",
            here=True,
            skip=1,
            takes="-e -t -d -E -g --extension --type --max-depth --exclude",
            risky=dict.fromkeys(("-x", "-X", "--exec", "--exec-batch"), _EXECUTES),
        ),
    ),
    "locate": RuleRow("text"),
    "jq": RuleRow("reads", skip=1, takes="--arg --argjson --indent", reading="-f --from-file"),
}

CHANGERS: Mapping[str, RuleRow] = {
    "touch": RuleRow("writes", takes="-d -t --date --time", reading="-r --reference"),
    "mkdir": RuleRow("writes", takes="-m --mode"),
    "tee": RuleRow("writes", empties=True),
    "sponge": RuleRow("writes"),
    "truncate": RuleRow("writes", empties=True, takes="-s --size", reading="-r --reference"),
    "fallocate": RuleRow("writes", takes="-l -o"),
    "mkfifo": RuleRow("writes", takes="-m"),
    "mknod": RuleRow("writes", level="high", why="makes a device"),
    "split": RuleRow("writes", takes="-b -l -n -d -a"),
    "rm": RuleRow("deletes"),
    "rmdir": RuleRow("deletes"),
    "unlink": RuleRow("deletes"),
    "trash": RuleRow("deletes"),
    "srm": RuleRow("deletes"),
    "shred": RuleRow("deletes", takes="-n -s"),
    "cpio": RuleRow("writes", here=True, takes="-H -C", writing="-D --directory -O -F"),
    "ar": RuleRow("writes", skip=1, writing="--output"),
    **dict.fromkeys(names("7z 7za 7zr"), RuleRow("writes", skip=1, writing="-o", takes="-p -x -i")),
    "xmllint": RuleRow("reads", takes="--xpath --encode", writing="--output -o"),
    "strip": RuleRow("writes", takes="-K -N", writing="-o"),
    "cp": RuleRow(
        "copies",
        empties=True,
        takes="-S --suffix",
        writing="-t --target-directory",
        deep="-r -R -a --recursive",
    ),
    "mv": RuleRow("moves", takes="-S --suffix", writing="-t --target-directory"),
    "ln": RuleRow("links", takes="-S --suffix", writing="-t --target-directory"),
    "link": RuleRow("links"),
    "install": RuleRow(
        "copies", empties=True, takes="-m -o -g -S", writing="-t --target-directory"
    ),
    "chown": RuleRow("writes", skip=1, takes="--from"),
    "chgrp": RuleRow("writes", skip=1),
    "chattr": RuleRow("writes", skip=1),
    "setfacl": RuleRow("writes", takes="-m -x"),
    "xattr": RuleRow("writes", takes="-w -d"),
    "patch": RuleRow(
        "writes", here=True, takes="-p -d", reading="-i --input", writing="-o -d --directory"
    ),
    **dict.fromkeys(
        names("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 dos2unix unix2dos"),
        RuleRow("writes", takes="-T -S --suffix", writing="-o"),
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
