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
	where := path
	if path == "" {
		where = "the arguments"
	}
	if kinds := typesOf(schema["type"]); len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind string) bool { return isOf(value, kind) }) {
		return fmt.Errorf("%s must be %s, not %s", where, articles(kinds), shown(*value))
	}
	if choices := listOf(schema["enum"]); choices != nil && !slices.ContainsFunc(choices, func(choice any) bool {
		return same(choice, *value)
	}) {
		return fmt.Errorf("%s must be one of %s, not %s", where, shownAll(choices), shown(*value))
	}
	if problem := outOfBounds(*value, schema); problem != "" {
		return fmt.Errorf("%s must %s", where, problem)
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
	for _, name := range sortedNames(properties) {
		described, _ := properties[name].(Schema)
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
			if err := check(&given, described, within(path, name)); err != nil {
				return err
			}
			members[name] = given
		} else if slices.Contains(required, any(name)) {
			return fmt.Errorf("%s is missing", within(path, name))
		}
	}
	for _, name := range required {
		if _, there := members[fmt.Sprint(name)]; !there {
			return fmt.Errorf("%s is missing", within(path, fmt.Sprint(name)))
		}
	}
	return checkOthers(members, properties, schema["additionalProperties"], path)
}

func checkOthers(members map[string]any, properties Schema, rule any, path string) error {
	for _, name := range sortedNames(members) {
		value := members[name]
		if _, known := properties[name]; known {
			continue
		}
		if rule == false {
			return fmt.Errorf("there is no argument %s; there are %s", within(path, name), names(properties))
		}
		if values, described := rule.(Schema); described {
			if err := check(&value, values, within(path, name)); err != nil {
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
	switch held := value.(type) {
	case json.Number:
		size, _ := held.Float64()
		return bounds(size, schema, "minimum", "maximum", "be", "")
	case string:
		return bounds(float64(utf8.RuneCountInString(held)), schema, "minLength", "maxLength", "have", " characters")
	case []any:
		return bounds(float64(len(held)), schema, "minItems", "maxItems", "have", " members")
	}
	return ""
}

func bounds(size float64, schema Schema, low, high, verb, unit string) string {
	if limit, given := number(schema[low]); given && size < limit {
		return fmt.Sprintf("%s at least %v%s, not %v", verb, limit, unit, size)
	}
	if limit, given := number(schema[high]); given && size > limit {
		return fmt.Sprintf("%s at most %v%s, not %v", verb, limit, unit, size)
	}
	return ""
}

// typesOf takes the one type or the several that a schema allows.
func typesOf(value any) []string {
	if kind, one := value.(string); one {
		return []string{kind}
	}
	kinds := []string{}
	for _, kind := range listOf(value) {
		kinds = append(kinds, fmt.Sprint(kind))
	}
	return kinds
}

func articles(kinds []string) string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = article(kind)
	}
	return strings.Join(words, " or ")
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
	if kind == "null" {
		return kind
	}
	if kind == "integer" || kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// shownLength is how much is shown of a value that does not fit.
const shownLength = 80

func shown(value any) string {
	text, err := jsonText(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	if letters := []rune(text); len(letters) > shownLength {
		return string(letters[:shownLength]) + "…"
	}
	return text
}

func shownAll(values []any) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = shown(value)
	}
	return strings.Join(words, ", ")
}

func names(properties Schema) string {
	if len(properties) == 0 {
		return "none"
	}
	return strings.Join(sortedNames(properties), ", ")
}

func sortedNames(members map[string]any) []string {
	all := make([]string, 0, len(members))
	for name := range members {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}
