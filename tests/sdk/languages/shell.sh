# Shell: not one remark of shellcheck, in the programs either.
source "$TOOLS/follow_readme.sh"
mapfile -t scripts < <(find quakes planets things nasty alone loner -name '*.sh')
shellcheck "${scripts[@]}" "$PROGRAMS"/{main,exact}.sh
chmod +x nasty/*.sh
for package in quakes planets things nasty; do "$package/test.sh"; done
for package in quakes planets; do follow_readme "$package" 2>&1; done
sed 's#\./quakes\.sh#./alone.sh#' quakes/example.sh > alone/example.sh
bash alone/example.sh 2>&1
for snippet in quakes things plain; do { bash "snippets/$snippet" && echo; } 2> said || { cat said; exit 1; }; done
for program in exact main; do cp "$PROGRAMS/$program.sh" .; done
# In a folder for temporary files with an odd name, which is left empty.
odd="$PWD/it's \"odd\" = \$x"
mkdir "$odd"
for program in exact main; do $BESET TMPDIR="$odd" bash "$program.sh"; done
rmdir "$odd"
