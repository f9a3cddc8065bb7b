// A client-go informer that says what it sees: the other half of tests/it/informers.rs.
//
//	put NAME VERSION SEQUENCE   an object is there, in this form
//	gone NAME VERSION           an object went (version 0: found missing in a new list)
//	list                        everything is asked for anew
//
// The line `dump` on standard input prints the cache: `cached NAME VERSION SEQUENCE`, then `end`.
package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var lines sync.Mutex

func say(format string, values ...any) {
	lines.Lock()
	defer lines.Unlock()
	fmt.Printf(format+"\n", values...)
}

// noticing tells of requests that ask for everything.
type noticing struct{ next http.RoundTripper }

func (n noticing) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if query.Get("watch") == "" || query.Get("sendInitialEvents") == "true" {
		say("list")
	}
	return n.next.RoundTrip(request)
}

func put(object any) {
	if found, ok := object.(*corev1.ConfigMap); ok {
		say("put %s %s %s", found.Name, found.ResourceVersion, found.Data["sequence"])
	}
}

func gone(object any) {
	switch found := object.(type) {
	case *corev1.ConfigMap:
		say("gone %s %s", found.Name, found.ResourceVersion)
	case cache.DeletedFinalStateUnknown:
		_, name, _ := cache.SplitMetaNamespaceKey(found.Key)
		say("gone %s 0", name)
	}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noticing{next} })
	factory := informers.NewSharedInformerFactoryWithOptions(
		kubernetes.NewForConfigOrDie(config), 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: gone,
	})
	if err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	for !informer.HasSynced() {
		time.Sleep(10 * time.Millisecond)
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if strings.TrimSpace(input.Text()) != "dump" {
			continue
		}
		for _, object := range informer.GetStore().List() {
			found := object.(*corev1.ConfigMap)
			say("cached %s %s %s", found.Name, found.ResourceVersion, found.Data["sequence"])
		}
		say("end")
	}
}
