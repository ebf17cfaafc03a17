// Command deploycheck says what is wrong with the files of deploy/: whether Kubernetes knows each field of its objects,
// Compose its file, and BuildKit its Containerfile. It is a module of its own: they need much that Toolgrant does not.
//
//	deploycheck ../../deploy
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: deploycheck FOLDER")
		os.Exit(2)
	}
	dir := os.Args[1]
	if err := errors.Join(kubernetes(filepath.Join(dir, "kubernetes")), compose(filepath.Join(dir, "compose", "compose.yaml")),
		containerfile(filepath.Join(dir, "Containerfile"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kinds are the objects that there may be.
var kinds = map[string]func() any{
	"v1 Namespace":                                  func() any { return &corev1.Namespace{} },
	"v1 Service":                                    func() any { return &corev1.Service{} },
	"v1 ServiceAccount":                             func() any { return &corev1.ServiceAccount{} },
	"apps/v1 Deployment":                            func() any { return &appsv1.Deployment{} },
	"policy/v1 PodDisruptionBudget":                 func() any { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1 NetworkPolicy":            func() any { return &networkingv1.NetworkPolicy{} },
	"kustomize.config.k8s.io/v1beta1 Kustomization": func() any { return &kustomization{} },
}

// kustomization is what is used of one.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
}

func kubernetes(dir string) (faults error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("%s: no files: %w", dir, err)
	}
	objects := map[string]any{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, document := range bytes.Split(data, []byte("\n---\n")) {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(document, &head); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			made := kinds[head.APIVersion+" "+head.Kind]
			if made == nil {
				faults = errors.Join(faults, fmt.Errorf("%s: an unknown kind %s %s", name, head.APIVersion, head.Kind))
				continue
			}
			object := made()
			if err := yaml.UnmarshalStrict(document, object); err != nil {
				faults = errors.Join(faults, fmt.Errorf("%s: %w", name, err))
			}
			objects[head.Kind] = object
		}
	}
	if k, ok := objects["Kustomization"].(*kustomization); ok {
		if len(k.Resources) != len(names)-1 {
			faults = errors.Join(faults, fmt.Errorf("%s: %d resources for %d files", dir, len(k.Resources), len(names)-1))
		}
		for _, name := range k.Resources {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				faults = errors.Join(faults, err)
			}
		}
	}
	return errors.Join(faults, fits(objects))
}

// fits tells whether objects refer to what there is.
func fits(objects map[string]any) (faults error) {
	d, ok := objects["Deployment"].(*appsv1.Deployment)
	if !ok {
		return errors.New("no Deployment")
	}
	labels := d.Spec.Template.Labels
	selects := func(what string, selector map[string]string) {
		for key, value := range selector {
			if labels[key] != value {
				faults = errors.Join(faults, fmt.Errorf("%s selects %s=%s, which pods don't have", what, key, value))
			}
		}
		if len(selector) == 0 {
			faults = errors.Join(faults, fmt.Errorf("%s selects everything", what))
		}
	}
	selects("the Deployment", d.Spec.Selector.MatchLabels)
	if s, ok := objects["Service"].(*corev1.Service); ok {
		selects("the Service", s.Spec.Selector)
	}
	if p, ok := objects["PodDisruptionBudget"].(*policyv1.PodDisruptionBudget); ok {
		selects("the PodDisruptionBudget", p.Spec.Selector.MatchLabels)
	} else {
		faults = errors.Join(faults, errors.New("no PodDisruptionBudget"))
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.ReadinessProbe == nil || c.LivenessProbe == nil || c.StartupProbe == nil {
			faults = errors.Join(faults, fmt.Errorf("container %s lacks a probe", c.Name))
		}
		for _, e := range c.Env {
			if secret := strings.HasSuffix(e.Name, "_URL"); secret && e.ValueFrom == nil {
				faults = errors.Join(faults, fmt.Errorf("%s is a secret, and stands in the file", e.Name))
			}
		}
	}
	return faults
}

func compose(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory(filepath.Dir(file)))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(project.Services) < 4 {
		return fmt.Errorf("%s: %d services", file, len(project.Services))
	}
	return nil
}

func containerfile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(stages) != 2 {
		return fmt.Errorf("%s: %d stages, not 2", file, len(stages))
	}
	return nil
}
