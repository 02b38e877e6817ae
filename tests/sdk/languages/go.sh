# Go: vet finds nothing to say.
source "$TOOLS/follow_readme.sh"
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off GOTELEMETRY=off PATH="$TOOLS/.venv/bin:$PATH"
modules=(quakes planets things nasty alone loner)
for module in alone loner; do printf 'module %s\n\ngo 1.24\n' "$module" > "$module/go.mod"; done
{
    printf 'module program\n\ngo 1.24\n\n'
    for module in "${modules[@]}"; do printf 'require %s v0.0.0\n\nreplace %s => ./%s\n\n' "$module" "$module" "$module"; done
} > go.mod
mkdir -p bin cmd/{main,exact,alone,snippet-quakes,snippet-things,snippet-plain}
cp "$PROGRAMS/main.go" cmd/main
cp "$PROGRAMS/exact.go" cmd/exact
sed 's/\bquakes\b/alone/g' quakes/example/main.go > cmd/alone/main.go
for snippet in quakes things; do
    {
        printf 'package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"log"\n\n\t"%s"\n)\n\nfunc main() {\n\tctx := context.Background()\n' "$snippet"
        cat "snippets/$snippet"
        printf '}\n'
    } > "cmd/snippet-$snippet/main.go"
done
cp snippets/plain cmd/snippet-plain/main.go
# What is not imported by a program is looked at by its own module.
for module in "${modules[@]}"; do (cd "$module" && go vet ./...); done
go vet ./...
for module in quakes planets things nasty; do (cd "$module" && go test ./... > test.log) || { cat "$module/test.log"; exit 1; }; done
go build -o bin ./cmd/...
for package in quakes planets; do follow_readme "$package"; done
for program in alone snippet-quakes snippet-things snippet-plain; do "bin/$program"; done
for program in exact main; do $BESET "bin/$program"; done
