import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
{% if has_paging %}
	"iter"
{% endif %}
{% if has_parts %}
	"maps"
{% endif %}
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
{% if has_paging or has_parts %}
	"slices"
{% endif %}
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

