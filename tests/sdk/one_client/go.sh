# Go: neither vet nor gofmt finds anything to say.
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off GOTELEMETRY=off PATH="$TOOLS/.venv/bin:$PATH"
printf 'module program\n\ngo 1.24\n\nrequire %s v0.0.0\n\nreplace %s => ./%s\n' "$PACKAGE" "$PACKAGE" "$PACKAGE" > go.mod
cp "$PROGRAMS/$PROGRAM.go" .
(cd "$PACKAGE" && go vet ./...)
go vet .
[[ -z "$("$(go env GOROOT)/bin/gofmt" -l .)" ]] || { "$(go env GOROOT)/bin/gofmt" -d .; exit 1; }
go build -o program .
exec ./program
