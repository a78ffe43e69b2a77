package hilt

// What both dialects have in common: what was heard, what is to be said, in the words of the jsonrpc dialect, which has a
// method for everything. frames.go and jsonrpc.go turn lines into these values and back.

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Dialect is one of the two ways to talk with a host.
type Dialect string

const (
	// Frames is the dialect of zot, on stdin and stdout.
	Frames Dialect = "frames"
	// JSONRPC is the dialect of piglet, on descriptors 3 and 4 or on stdin and stdout.
	JSONRPC Dialect = "jsonrpc"
)

// HostInfo is what the host said of itself. What it did not say is empty.
type HostInfo struct {
	// Name is "hilt", "zot" or "piglet".
	Name    string
	Version string
	Dialect Dialect
	// Capabilities are those that it announced.
	Capabilities []string
	// Provider and Model are those that answer at the beginning.
	Provider string
	Model    string
}

func (h HostInfo) String() string { return strings.TrimSpace(h.Name + " " + h.Version) }

type obj = map[string]any

type kind int

const (
	unknown kind = iota
	greeting
	question
	notice
	response
)

// incoming is one line of the host's.
type incoming struct {
	kind   kind
	method string
	// id is its JSON text, since one dialect has strings and the other numbers.
	id     string
	params json.RawMessage
	result json.RawMessage
	fault  *HostError
}

// greeted is what a host says at the beginning.
type greeted struct {
	host         HostInfo
	cwd          string
	dataDir      string
	extensionDir string
}

// registration is something that is offered to the host: its kind in the words of the frames dialect, its members in those
// of the other.
type registration struct {
	kind    string
	members obj
}

// dialect turns what is to be said into lines, and lines into what was said. It keeps nothing.
type dialect interface {
	name() Dialect
	read(line []byte) (incoming, error)
	greeted(in incoming) (greeted, error)
	register(r registration) obj
	// answer is everything to be said for it, the answer itself last.
	answer(in incoming, value any, fault *HostError) []obj
	tell(method string, params obj) obj
	ask(id int, method string, params obj) obj
	// takeBack tells that the answer to one's own question is not wanted any more.
	takeBack(id int, method string) obj
}

// HostError is the host's word that it did not do what it was asked.
type HostError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *HostError) Error() string { return e.Message }

const (
	codeUnknownMethod = -32601
	codeBadParams     = -32602
	codeFailed        = -32603
)

// NotOffered is the error of using what the present host does not have.
type NotOffered struct {
	// Feature is its name in the table of features.
	Feature string
	Host    HostInfo
}

func (e *NotOffered) Error() string {
	return fmt.Sprintf("%s does not offer %s", e.Host, features()[e.Feature].Words)
}

// present leaves out members at their default, which neither dialect writes.
func present(members obj) obj {
	kept := make(obj, len(members))
	for name, value := range members {
		switch held := value.(type) {
		case nil:
			continue
		case string:
			if held == "" {
				continue
			}
		case bool:
			if !held {
				continue
			}
		case int:
			if held == 0 {
				continue
			}
		case []string:
			if len(held) == 0 {
				continue
			}
		case json.RawMessage:
			if len(held) == 0 {
				continue
			}
		case Schema:
			if held == nil {
				continue
			}
		}
		kept[name] = value
	}
	return kept
}

// only are the members with these names.
func only(members obj, names ...string) obj {
	kept := obj{}
	for _, name := range names {
		if value, there := members[name]; there {
			kept[name] = value
		}
	}
	return kept
}

// merge is the first with all of the second.
func merge(one, other obj) obj {
	for name, value := range other {
		one[name] = value
	}
	return one
}
