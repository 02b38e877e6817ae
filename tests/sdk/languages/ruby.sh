# Ruby: not one warning.
source "$TOOLS/follow_readme.sh"
while read -r file; do
    said="$(ruby -wc "$file" 2>&1)"
    [[ "$said" == "Syntax OK" ]] || { echo "$file: $said" >&2; exit 1; }
done < <(find quakes planets things nasty alone loner -name '*.rb' -o -name '*.gemspec')
for package in quakes planets things nasty; do
    ruby -w -I "$package/lib" "$package/test/client_test.rb" > test.log || { cat test.log; exit 1; }
done
ruby -w -I loner -e 'require "loner"'
export GEM_HOME="$PWD/gems"
for package in quakes planets; do follow_readme "$package" 2>&1; done
sed 's/\bquakes\b/alone/g; s/\bQuakes\b/Alone/g' quakes/examples/first_call.rb > alone/first_call.rb
ruby -w -I alone alone/first_call.rb
for snippet in quakes things; do ruby -w -I "$snippet/lib" -r json -r "$snippet" "snippets/$snippet"; done
$BESET ruby -w -I things/lib "$PROGRAMS/exact.rb"
exec $BESET ruby -w -I quakes/lib -I planets/lib "$PROGRAMS/main.rb"
