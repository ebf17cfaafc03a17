package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// manifests are what was read, document by document: a file may hold several.
type manifests []*document

// readManifests reads files, folders and standard input. Every fault tells its file, line and field.
func readManifests(names []string, in io.Reader) (manifests, error) {
	var all manifests
	faults := &manifestError{headline: "the manifest cannot be read"}
	read := func(name string, from io.Reader) error {
		data, err := io.ReadAll(io.LimitReader(from, maxMessageBytes+1))
		if err != nil {
			return err
		}
		if len(data) > maxMessageBytes {
			faults.faults = append(faults.faults, fmt.Sprintf("%s:1:1: larger than %d MiB", name, maxMessageBytes>>20))
			return nil
		}
		documents, wrong := parseFile(name, data)
		all = append(all, documents...)
		faults.faults = append(faults.faults, wrong...)
		return nil
	}
	for _, name := range names {
		var err error
		if name == "-" {
			err = read("standard input", in)
		} else {
			err = eachFile(name, read)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(faults.faults) > 0 {
		return nil, faults
	}
	if proto.Size(all.joined()) == 0 {
		return nil, errors.New("nothing to apply: no manifest names an object")
	}
	return all, nil
}

// eachFile reads a file, or those of a folder and the folders in it that look like manifests. Hidden ones are
// left out: mounted configurations keep their real files in such folders, next to links to them.
func eachFile(name string, read func(name string, from io.Reader) error) error {
	open := func(path string) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return read(path, file)
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return open(name)
	}
	return fs.WalkDir(os.DirFS(name), ".", func(path string, entry fs.DirEntry, err error) error {
		hidden := path != "." && entry.Name()[0] == '.'
		switch ext := filepath.Ext(path); {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir(), hidden, ext != ".yaml" && ext != ".yml" && ext != ".json":
			return nil
		}
		return open(filepath.Join(name, path))
	})
}

// joined is the one manifest that all documents make together.
func (m manifests) joined() *toolgrantv1.Manifest {
	joined := &toolgrantv1.Manifest{}
	for _, d := range m {
		proto.Merge(joined, d.content)
	}
	return joined
}

// parseFile reads the documents of a file: JSON as JSON, everything else as YAML, which can hold several.
func parseFile(name string, data []byte) (documents []*document, faults []string) {
	if fault := checkText(data); fault != "" {
		return nil, []string{name + ":" + fault}
	}
	if json.Valid(data) {
		d, faults := parseJSON(name, data)
		return []*document{d}, faults
	}
	if fault := checkCharacters(data); fault != "" {
		return nil, []string{name + ":" + fault}
	}
	for _, part := range splitDocuments(data) {
		d, wrong := parseYAML(name, part)
		documents = append(documents, d)
		faults = append(faults, wrong...)
	}
	return documents, faults
}
