#!/bin/sh
# Removes what install.sh put there; runs and settings of the user stay.
set -eu
to=$(dirname "$(readlink -f "$0")")
prefix=$(dirname "$(dirname "$to")")
case $to in */opt/contrastive-explorer) ;; *) echo "$to is not an installation." >&2; exit 1 ;; esac
for name in contrastive-explorer trainer; do
    if [ "$(readlink "$prefix/bin/$name")" = "$to/bin/$name" ]; then rm "$prefix/bin/$name"; fi
done
(cd "$to/share" && find . -type f) | while read -r file; do rm -f "$prefix/share/$file"; done
folders=$(cd "$to/share" && find . -depth -type d)
rm -rf "$to"
# Folders that are empty now, install.sh may have made.
for folder in $folders; do rmdir "$prefix/share/$folder" 2>/dev/null || true; done
rmdir "$prefix/bin" "$prefix/opt" 2>/dev/null || true
for tool in "update-mime-database $prefix/share/mime" "update-desktop-database $prefix/share/applications"; do
    if command -v "${tool%% *}" >/dev/null; then $tool >/dev/null 2>&1 || true; fi
done
echo "Removed: $to. Runs and settings were left."
