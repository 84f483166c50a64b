# Installs one package with apt, without starting the services that come with it.
# The text runs as `sh -c TEXT install PACKAGE`, as root; install.rs tells why it is made like this.
policy=/usr/sbin/policy-rc.d
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1

# One of ours that is still there is from an installation that was killed.
if ! [ -e "$policy" ] || grep -q "Made by watertight" "$policy"; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    cat >"$policy" <<POLICY
#!/bin/sh
# Made by watertight while it installs $1: keeps new services from being started.
# Without the installing process $$ it allows everything; then it may be removed.
[ -d /proc/$$ ] || exit 0
exit 101
POLICY
    chmod 755 "$policy"
fi

apt() {
    apt-get --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}
apt install "$1" || { apt update && apt install "$1"; }
