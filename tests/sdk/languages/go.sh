# Go: vet finds nothing to say.
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off GOTELEMETRY=off PATH="$TOOLS/.venv/bin:$PATH"
cat > go.mod <<'END'
module program

go 1.24

require (
	planets v0.0.0
	quakes v0.0.0
)

replace planets => ./planets

replace quakes => ./quakes
END
cp "$PROGRAMS/main.go" .
for package in quakes planets nasty; do (cd "$package" && go vet ./...); done
go vet .
go build -o program .
exec ./program
