package hilt

// The JSON Schema of a tool's arguments, from the fields of a struct and their tags.

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Schema is a JSON Schema, for tools whose arguments no struct describes.
type Schema = map[string]any

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// SchemaOf makes the schema of a struct type. The tags it reads: `json` for the name, `help` for the description,
// `default`, `enum` (separated by commas), `min` and `max`. A field is required unless it has `omitempty`, a default, or is
// a pointer.
func SchemaOf[A any]() (Schema, error) {
	return structSchema(reflect.TypeFor[A]())
}

func structSchema(kind reflect.Type) (Schema, error) {
	if kind.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments are a struct, not %s: give hilt.WithSchema for anything else", kind)
	}
	properties := Schema{}
	required := []string{}
	if err := addFields(kind, nil, properties, &required); err != nil {
		return nil, err
	}
	schema := Schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema, nil
}

func addFields(kind reflect.Type, within []reflect.Type, properties Schema, required *[]string) error {
	if slices.Contains(within, kind) {
		return fmt.Errorf("%s holds itself: give hilt.WithSchema", kind)
	}
	within = append(slices.Clone(within), kind)
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct {
			if err := addFields(field.Type, within, properties, required); err != nil {
				return err
			}
			continue
		}
		if !field.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		schema, err := fieldSchema(field, within)
		if err != nil {
			return fmt.Errorf("field %s: %w", field.Name, err)
		}
		properties[name] = schema
		_, defaulted := schema["default"]
		if !defaulted && field.Type.Kind() != reflect.Pointer && !slices.Contains(strings.Split(options, ","), "omitempty") {
			*required = append(*required, name)
		}
	}
	return nil
}

func fieldSchema(field reflect.StructField, within []reflect.Type) (Schema, error) {
	schema, err := typeSchema(field.Type, within)
	if err != nil {
		return nil, err
	}
	if help := field.Tag.Get("help"); help != "" {
		schema["description"] = help
	}
	if err := addChoices(schema, field.Tag.Get("enum")); err != nil {
		return nil, err
	}
	for tag, keywords := range map[string][3]string{
		"min": {"minimum", "minLength", "minItems"},
		"max": {"maximum", "maxLength", "maxItems"},
	} {
		if limit, there := field.Tag.Lookup(tag); there {
			if err := addLimit(schema, tag, limit, keywords); err != nil {
				return nil, err
			}
		}
	}
	if fallback, there := field.Tag.Lookup("default"); there {
		value, err := parseTag(fallback, schema["type"])
		if err != nil {
			return nil, fmt.Errorf("default %q: %w", fallback, err)
		}
		if problem := check(&value, schema, ""); problem != nil {
			return nil, fmt.Errorf("default %q: %w", fallback, problem)
		}
		schema["default"] = value
	}
	return schema, nil
}

func typeSchema(kind reflect.Type, within []reflect.Type) (Schema, error) {
	switch {
	case kind == rawType:
		return Schema{}, nil
	case kind.Kind() != reflect.Pointer && reflect.PointerTo(kind).Implements(textType):
		return Schema{"type": "string"}, nil
	}
	switch kind.Kind() {
	case reflect.Pointer:
		return typeSchema(kind.Elem(), within)
	case reflect.String:
		return Schema{"type": "string"}, nil
	case reflect.Bool:
		return Schema{"type": "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Schema{"type": "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Schema{"type": "integer", "minimum": json.Number("0")}, nil
	case reflect.Float32, reflect.Float64:
		return Schema{"type": "number"}, nil
	case reflect.Interface:
		if kind.NumMethod() == 0 {
			return Schema{}, nil
		}
	case reflect.Slice, reflect.Array:
		items, err := typeSchema(kind.Elem(), within)
		if err != nil || kind.Elem().Kind() == reflect.Uint8 {
			return Schema{"type": "string", "contentEncoding": "base64"}, err
		}
		return Schema{"type": "array", "items": items}, nil
	case reflect.Map:
		values, err := typeSchema(kind.Elem(), within)
		if err == nil && kind.Key().Kind() == reflect.String {
			return Schema{"type": "object", "additionalProperties": values}, nil
		}
		if err != nil {
			return nil, err
		}
	case reflect.Struct:
		properties := Schema{}
		required := []string{}
		if err := addFields(kind, within, properties, &required); err != nil {
			return nil, err
		}
		schema := Schema{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			schema["required"] = required
		}
		return schema, nil
	}
	return nil, fmt.Errorf("there is no JSON Schema for the type %s: take another, or give hilt.WithSchema", kind)
}

func addChoices(schema Schema, tag string) error {
	if tag == "" {
		return nil
	}
	if items, isList := schema["items"].(Schema); isList {
		return addChoices(items, tag)
	}
	choices := []any{}
	for _, word := range strings.Split(tag, ",") {
		choice, err := parseTag(strings.TrimSpace(word), schema["type"])
		if err != nil {
			return fmt.Errorf("enum %q: %w", word, err)
		}
		choices = append(choices, choice)
	}
	schema["enum"] = choices
	return nil
}

func addLimit(schema Schema, tag, limit string, keywords [3]string) error {
	if _, err := strconv.ParseFloat(limit, 64); err != nil {
		return fmt.Errorf("%s %q is no number", tag, limit)
	}
	switch schema["type"] {
	case "integer", "number":
		schema[keywords[0]] = json.Number(limit)
	case "string":
		schema[keywords[1]] = json.Number(limit)
	case "array":
		schema[keywords[2]] = json.Number(limit)
	default:
		return fmt.Errorf("%s is for numbers, texts and lists", tag)
	}
	return nil
}

// parseTag reads a value from a tag: texts stand as they are, all else is JSON.
func parseTag(text string, kind any) (any, error) {
	if kind == "string" {
		return text, nil
	}
	return decodeAny([]byte(text))
}

// decodeAny reads any JSON; numbers stay as they are written.
func decodeAny(data []byte) (any, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	return value, err
}
