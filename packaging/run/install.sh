#!/bin/sh
# Installs into the user's own folders, or below PREFIX (default: ~/.local); uninstall.sh takes it away.
set -eu
here=$(dirname "$(readlink -f "$0")")
prefix=${PREFIX:-$HOME/.local}
to=$prefix/opt/contrastive-explorer
mkdir -p "$prefix/opt" "$prefix/bin" "$prefix/share"
rm -rf "$to"
cp -a "$here" "$to"
for name in contrastive-explorer trainer; do
    if [ -e "$prefix/bin/$name" ] && [ ! -L "$prefix/bin/$name" ]; then
        echo "$prefix/bin/$name is another program; it was left. Start $to/bin/$name instead."
    else
        ln -sfn "$to/bin/$name" "$prefix/bin/$name"
    fi
done
cp -a "$to/share/." "$prefix/share/"
sed -i "s#^Exec=contrastive-explorer#Exec=$to/bin/contrastive-explorer#" "$prefix/share/applications/contrastive-explorer.desktop"
for tool in "update-mime-database $prefix/share/mime" "update-desktop-database $prefix/share/applications"; do
    if command -v "${tool%% *}" >/dev/null; then $tool >/dev/null 2>&1 || true; fi
done
echo "Installed: $to. Start it: $prefix/bin/contrastive-explorer. Remove it: $to/uninstall.sh"
