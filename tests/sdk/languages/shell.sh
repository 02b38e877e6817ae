# Shell: not one remark of shellcheck, in the program either.
mapfile -t scripts < <(find quakes planets nasty -name '*.sh')
shellcheck "${scripts[@]}" "$PROGRAMS/main.sh"
chmod +x "${scripts[@]}"
for package in quakes planets nasty; do "$package/test.sh"; done
cp "$PROGRAMS/main.sh" .
exec bash main.sh
