#!/usr/bin/env bash
# Downloads the original source of a Debian package into a directory, which keeps nothing of apt's own state:
# debian_source.sh PACKAGE DIR
set -euo pipefail
package=$1 dir=$2
command -v dpkg-source >/dev/null || apt-get install -qq -y dpkg-dev >/dev/null
mkdir -p "$dir/parts" "$dir/lists/partial"
cat >"$dir/parts/source.sources" <<'S'
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
S
apt=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$dir/parts" -o "Dir::State::lists=$dir/lists")
apt-get "${apt[@]}" update -qq
(cd "$dir" && apt-get "${apt[@]}" source --download-only -qq "$package")
