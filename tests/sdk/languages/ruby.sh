# Ruby: not one warning.
while read -r file; do
    said="$(ruby -wc "$file" 2>&1)"
    [[ "$said" == "Syntax OK" ]] || { echo "$file: $said" >&2; exit 1; }
done < <(find quakes planets nasty -name '*.rb' -o -name '*.gemspec')
exec ruby -w -I quakes/lib -I planets/lib "$PROGRAMS/main.rb"
