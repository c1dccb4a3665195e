#!/bin/sh
# Builds "Contrastive Explorer.app" and a disk image on a Mac: sh packaging/macos/make_app.sh OUT
# CODESIGN_IDENTITY names a certificate; without one the application is signed for this computer only. Notarization
# needs an account of Apple and is a step of its own.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/pyproject.toml" | head -n 1)
app="$out/Contrastive Explorer.app"
python="$app/Contents/Resources/python"
rm -rf "$app" "$out/wheel"
mkdir -p "$app/Contents/MacOS" "$app/Contents/Resources"
sed "s/@VERSION@/$version/" "$root/packaging/macos/Info.plist" >"$app/Contents/Info.plist"

uv python install --no-bin --install-dir "$out/pythons" 3.12
cp -R "$(dirname "$(dirname "$(ls "$out"/pythons/cpython-3.12*/bin/python3.12 | head -n 1)")")" "$python"
rm -rf "$python/lib/python3.12/test" "$python/lib/python3.12/idlelib"
uv build --wheel --quiet --out-dir "$out/wheel" "$root"
grep -E '^[A-Za-z0-9]' "$root/requirements.lock" | sed 's/ *\\$//' >"$out/constraints.txt"
uv pip install --quiet --only-binary :all: --constraints "$out/constraints.txt" \
    --target "$python/lib/python3.12/site-packages" --python "$python/bin/python3.12" "$out"/wheel/*.whl

for name in contrastive-explorer:explorer trainer:trainer; do
    file="$app/Contents/MacOS/${name%%:*}"
    printf '#!/bin/sh\nexec "$(dirname "$0")/../Resources/python/bin/python3.12" -P -m %s "$@"\n' "${name##*:}" >"$file"
    chmod 755 "$file"
done

icons="$out/contrastive-explorer.iconset"
mkdir -p "$icons"
qlmanage -t -s 1024 -o "$out" "$root/assets/icons/contrastive-explorer.svg" >/dev/null
for size in 16 32 128 256 512; do
    sips -z $size $size "$out/contrastive-explorer.svg.png" --out "$icons/icon_${size}x$size.png" >/dev/null
done
iconutil -c icns -o "$app/Contents/Resources/contrastive-explorer.icns" "$icons"

# Signed last: a change afterwards would break the seal. Torch is installed outside, in the user's own folder.
codesign --force --deep --sign "${CODESIGN_IDENTITY:--}" "$app"
hdiutil create -quiet -ov -volname "Contrastive Explorer" -srcfolder "$app" "$out/contrastive-explorer-$version.dmg"
echo "$out/contrastive-explorer-$version.dmg"
