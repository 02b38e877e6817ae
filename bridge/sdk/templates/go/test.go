package {{ package.flat }}

import (
	"strings"
	"testing"
)

func TestAClientNeedsASecret(t *testing.T) {
	t.Setenv("CONSUMER_SECRET", "")
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "CONSUMER_SECRET") {
		t.Fatalf("it must name what is missing, and says: %v", err)
	}
}

func TestTheSecretNeverTravelsInTheOpen(t *testing.T) {
	if _, err := New(Config{BaseURL: "http://example.org", Secret: "secret"}); err == nil {
		t.Fatal("plain HTTP to another machine must be refused")
	}
}
