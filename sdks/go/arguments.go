package hilt

// Checking the arguments of a call against the schema of its tool, and filling in what was left out.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checked gives the arguments with their defaults filled in, or says what is wrong with them.
func checked(arguments json.RawMessage, schema Schema) (json.RawMessage, error) {
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	value, err := decodeAny(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments are no JSON: %w", err)
	}
	if err := check(&value, schema, ""); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// check looks at what a schema says of types, members, choices and limits; other keywords are the host's to check.
func check(value *any, schema Schema, path string) error {
	where := func() string {
		if path == "" {
			return "the arguments"
		}
		return fmt.Sprintf("argument %q", path)
	}
	if kind, said := schema["type"].(string); said && !isOf(value, kind) {
		return fmt.Errorf("%s must be %s, not %s", where(), article(kind), shown(*value))
	}
	if choices := listOf(schema["enum"]); choices != nil && !slices.ContainsFunc(choices, func(choice any) bool {
		return same(choice, *value)
	}) {
		return fmt.Errorf("%s must be one of %s, not %s", where(), shownAll(choices), shown(*value))
	}
	if problem := outOfBounds(*value, schema); problem != "" {
		return fmt.Errorf("%s must have %s, not %s", where(), problem, shown(*value))
	}
	switch held := (*value).(type) {
	case map[string]any:
		return checkMembers(held, schema, path)
	case []any:
		items, described := schema["items"].(Schema)
		for i := range held {
			if !described {
				break
			}
			if err := check(&held[i], items, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkMembers(members map[string]any, schema Schema, path string) error {
	properties, _ := schema["properties"].(Schema)
	required := listOf(schema["required"])
	within := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	for name, property := range properties {
		described, _ := property.(Schema)
		given, there := members[name]
		if there && given == nil && described["type"] != nil && !slices.Contains(required, any(name)) {
			delete(members, name) // a model's way to say that it leaves it out
			there = false
		}
		if fallback, has := described["default"]; has && !there {
			members[name] = fallback
			continue
		}
		if there {
			if err := check(&given, described, within(name)); err != nil {
				return err
			}
			members[name] = given
		}
	}
	for _, name := range required {
		if _, there := members[fmt.Sprint(name)]; !there {
			return fmt.Errorf("argument %q is missing", within(fmt.Sprint(name)))
		}
	}
	return checkOthers(members, properties, schema["additionalProperties"], within)
}

func checkOthers(members map[string]any, properties Schema, rule any, within func(string) string) error {
	for name, value := range members {
		if _, known := properties[name]; known {
			continue
		}
		if rule == false {
			return fmt.Errorf("there is no argument %q; there is %s", within(name), names(properties))
		}
		if values, described := rule.(Schema); described {
			if err := check(&value, values, within(name)); err != nil {
				return err
			}
			members[name] = value
		}
	}
	return nil
}

// isOf tells whether a value is of a type of JSON Schema. A whole number that was written as 5.0 becomes 5.
func isOf(value *any, kind string) bool {
	switch held := (*value).(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	case json.Number:
		if kind != "integer" {
			return kind == "number"
		}
		if _, err := strconv.ParseInt(held.String(), 10, 64); err == nil {
			return true
		}
		if _, err := strconv.ParseUint(held.String(), 10, 64); err == nil {
			return true
		}
		whole, err := held.Float64()
		if err != nil || whole != float64(int64(whole)) {
			return false
		}
		*value = json.Number(strconv.FormatInt(int64(whole), 10))
		return true
	}
	return false
}

func outOfBounds(value any, schema Schema) string {
	size, what := 0.0, ""
	switch held := value.(type) {
	case json.Number:
		size, _ = held.Float64()
		return bounds(size, schema, "minimum", "maximum", "a value of")
	case string:
		size, what = float64(utf8.RuneCountInString(held)), "Length"
	case []any:
		size, what = float64(len(held)), "Items"
	default:
		return ""
	}
	return bounds(size, schema, "min"+what, "max"+what, "a length of")
}

func bounds(size float64, schema Schema, low, high, what string) string {
	if limit, given := number(schema[low]); given && size < limit {
		return fmt.Sprintf("%s at least %v", what, limit)
	}
	if limit, given := number(schema[high]); given && size > limit {
		return fmt.Sprintf("%s at most %v", what, limit)
	}
	return ""
}

func number(value any) (float64, bool) {
	switch held := value.(type) {
	case json.Number:
		parsed, err := held.Float64()
		return parsed, err == nil
	case int:
		return float64(held), true
	case float64:
		return held, true
	}
	return 0, false
}

// listOf takes the lists that schemas written by hand have, too.
func listOf(value any) []any {
	switch held := value.(type) {
	case []any:
		return held
	case []string:
		all := make([]any, len(held))
		for i, word := range held {
			all[i] = word
		}
		return all
	}
	return nil
}

func same(one, other any) bool {
	left, err := json.Marshal(one)
	right, failed := json.Marshal(other)
	return err == nil && failed == nil && bytes.Equal(left, right)
}

func article(kind string) string {
	if kind == "integer" || kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	if cut := 80; len(text) > cut {
		return strings.ToValidUTF8(string(text[:cut]), "") + "…"
	}
	return string(text)
}

func shownAll(values []any) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = shown(value)
	}
	return strings.Join(words, ", ")
}

func names(properties Schema) string {
	all := make([]string, 0, len(properties))
	for name := range properties {
		all = append(all, strconv.Quote(name))
	}
	if len(all) == 0 {
		return "none"
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}
