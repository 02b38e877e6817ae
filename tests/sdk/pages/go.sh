# Go: neither vet nor gofmt finds anything to say.
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off GOTELEMETRY=off PATH="$TOOLS/.venv/bin:$PATH"
printf 'module program\n\ngo 1.24\n\nrequire shelf v0.0.0\n\nreplace shelf => ./shelf\n' > go.mod
cp "$PROGRAMS/pages.go" .
(cd shelf && go vet ./...)
go vet .
[[ -z "$("$(go env GOROOT)/bin/gofmt" -l .)" ]] || { "$(go env GOROOT)/bin/gofmt" -d .; exit 1; }
go build -o program .
exec ./program
