#!/usr/bin/env bash
# Makes a virtual environment with the first supported Python (3.11 to 3.13) that can make one.
# Usage: tools/make_venv.sh FOLDER      PYTHON=/path/to/python is tried first.
set -euo pipefail

folder=$1
if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c 'import pip' 2>/dev/null; then
  exit 0
fi
for python in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
  [ -n "$python" ] || continue
  if "$python" -c '
import sys, ensurepip, venv
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    echo "making $folder with $("$python" --version)"
    "$python" -m venv --clear "$folder"
    exit 0
  fi
done
echo "goodput needs Python 3.11, 3.12 or 3.13 with venv; none found." \
  "Set PYTHON to one (Debian: apt-get install python3-venv)." >&2
exit 1
