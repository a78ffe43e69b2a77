package hilt

// What an extension may use, and whether the present host offers it.

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed features.json
var featureTable []byte

type feature struct {
	// Words is what it is called when it is missing.
	Words   string `json:"words"`
	Frames  string `json:"frames"`
	JSONRPC string `json:"jsonrpc"`
}

var features = sync.OnceValue(func() map[string]feature {
	var table struct {
		Features map[string]feature `json:"features"`
	}
	if err := json.Unmarshal(featureTable, &table); err != nil {
		panic(err) // it is part of this package
	}
	return table.Features
})

// offered tells whether a host that announced these capabilities has the feature.
func (f feature) offered(dialect Dialect, capabilities []string) bool {
	rule := f.Frames
	if dialect == JSONRPC {
		rule = f.JSONRPC
	}
	switch rule {
	case "base":
		return true
	case "none":
		return false
	}
	return slices.ContainsFunc(strings.Split(rule, "|"), func(name string) bool {
		return slices.Contains(capabilities, name)
	})
}

func placeOf(name string) int { return bytes.Index(featureTable, []byte(`"`+name+`": {`)) }

// usage is a feature that the extension uses, and for what.
type usage struct {
	feature string
	what    string
	// required means that without it the extension must not run.
	required bool
}

// lacking says of a host what it lacks: "zot 0.1.62 does not offer: prompt sections (Rules), shortcuts (ctrl+g)".
func lacking(host HostInfo, missing []usage) string {
	return fmt.Sprintf("%s does not offer: %s", host, strings.Join(lackingEach(missing), ", "))
}

func lackingEach(missing []usage) []string {
	order := []string{}
	things := map[string][]string{}
	for _, one := range missing {
		if _, there := things[one.feature]; !there {
			order = append(order, one.feature)
			things[one.feature] = nil
		}
		if one.what != "" && !slices.Contains(things[one.feature], one.what) {
			things[one.feature] = append(things[one.feature], one.what)
		}
	}
	// In the order of the table, whatever was registered first.
	slices.SortStableFunc(order, func(one, other string) int { return placeOf(one) - placeOf(other) })
	each := []string{}
	for _, name := range order {
		words := features()[name].Words
		if len(things[name]) > 0 {
			words += " (" + strings.Join(things[name], ", ") + ")"
		}
		each = append(each, words)
	}
	return each
}
