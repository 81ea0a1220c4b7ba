#!/usr/bin/env bash
# The Python package: built as a wheel and an sdist, installed by pip in a fresh environment; its tests, README's
# example, mypy on its stubs, and plyvel's own tests with only the import changed, as an ordinary user.
#
# It needs Python 3.11 with venv, and PyPI. `soak` as argument: ten minutes of everything, watching memory.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WINDROW_PYTHON_DIR:-$root/target/python}
crate=$root/crates/python
mkdir -p "$work"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$work/target} PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
said() { printf 'ok: %s\n' "$1"; }

# Apart from the workspace, so that its checks do not see it.
(cd "$crate" && cargo fmt --check && cargo clippy -q --locked --all-targets -- -D warnings)
said "formatted, and without warnings"

[ -x "$work/tools/bin/maturin" ] || { python3 -m venv "$work/tools" && "$work/tools/bin/pip" install -q 'maturin>=1.9,<2'; }
rm -rf "$work/dist" "$work/env"
(cd "$crate" && "$work/tools/bin/maturin" build -q --release --sdist --out "$work/dist")
python3 -m venv "$work/env"
"$work/env/bin/pip" install -q "$work"/dist/windrow-*.whl
said "$(basename "$work"/dist/windrow-*.whl) installs"

cd "$work" # not where the source is
block() { awk '$0 == "```python" {on = 1; next} /^```/ {on = 0} on' "$1"; }
rm -rf example && mkdir example
block "$crate/README.md" >example/readme.py
(cd example && ../env/bin/python readme.py >readme.out && grep -q pear readme.out)
said "README's example runs"

"$work/env/bin/pip" install -q pytest mypy typing_extensions
"$work/env/bin/mypy" --strict "$here/typed.py"
said "mypy on a program that uses every class"
"$work/env/bin/python" -m pytest -q -p no:cacheprovider "$crate/tests" | tail -3

if [ ! -e "$work/plyvel/test/test_plyvel.py" ]; then
    mkdir -p "$work/plyvel"
    url=$(curl -sf https://pypi.org/pypi/plyvel/json | python3 -c \
        "import json, sys; print(next(of['url'] for of in json.load(sys.stdin)['urls'] if of['packagetype'] == 'sdist'))")
    curl -sf "$url" | tar xz -C "$work/plyvel" --strip-components=1
fi
rm -rf "$work/suite" && mkdir "$work/suite"
sed 's/^import plyvel$/import windrow.plyvel as plyvel/' "$work/plyvel/test/test_plyvel.py" >"$work/suite/test_plyvel.py"
[ "$(diff "$work/plyvel/test/test_plyvel.py" "$work/suite/test_plyvel.py" | grep -c '^>')" = 1 ]
# One test makes a directory unwritable, which root notices only without its privilege to pass over that.
as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --bounding-set=-dac_override,-dac_read_search)
# Left out: one writes keys of up to 99,900 bytes, and Windrow's have 65,535 at most.
(cd "$work/suite" && "${as_user[@]}" "$work/env/bin/python" -m pytest -q -p no:cacheprovider test_plyvel.py \
    --deselect test_plyvel.py::test_approximate_sizes | tail -3)

if [ "${1:-}" = soak ]; then
    "$work/env/bin/python" "$here/soak.py" 600
fi
