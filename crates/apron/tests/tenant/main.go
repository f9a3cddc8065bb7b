// A program as packages bring them, for tests of what runs under `apron up`: it answers what it is asked
// about the place where it runs.
//
//	/              its name, and how it was started
//	/environment   its environment
//	/user          whom it runs as
//	/file?path=    a file
//	/write?path=   writes a file
//	/get?url=      what another server answers
//	/api?path=     what the API server answers, asked as programs in a cluster ask it
//	/ready, /live  as was set with /set?ready=false
//	/print?text=   prints a line
//	/exit?code=    ends
//	/spend?mb=     takes memory
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

var (
	lock  sync.Mutex
	said  = map[string]string{"ready": "true", "live": "true"}
	taken [][]byte
)

func fetch(client *http.Client, url, token string) (string, error) {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return fmt.Sprintf("%d %s", answer.StatusCode, body), err
}

func askServer(path string) (string, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return "", err
	}
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return fetch(client, "https://"+host+path, strings.TrimSpace(string(token)))
}

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		text = err.Error()
	}
	fmt.Fprintln(w, text)
}

func health(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		if said[name] != "true" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, said[name])
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "once" {
		fmt.Println(strings.Join(os.Args[2:], " "))
		return
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	host, _ := os.Hostname()
	fmt.Println("tenant begins on", host, "with", strings.Join(os.Args[1:], " "))
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	go func() {
		<-ends
		fmt.Println("tenant ends")
		os.Exit(0)
	}()
	query := func(r *http.Request, name string) string { return r.URL.Query().Get(name) }
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, host, strings.Join(os.Args, " "))
	})
	http.HandleFunc("/environment", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, strings.Join(os.Environ(), "\n"))
	})
	http.HandleFunc("/user", func(w http.ResponseWriter, _ *http.Request) {
		groups, _ := os.Getgroups()
		fmt.Fprintln(w, os.Getuid(), os.Getgid(), groups)
	})
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(query(r, "path"))
		answer(w, string(text), err)
	})
	http.HandleFunc("/write", func(w http.ResponseWriter, r *http.Request) {
		answer(w, "written", os.WriteFile(query(r, "path"), []byte("x"), 0o644))
	})
	http.HandleFunc("/get", func(w http.ResponseWriter, r *http.Request) {
		text, err := fetch(&http.Client{Timeout: 10 * time.Second}, query(r, "url"), "")
		answer(w, text, err)
	})
	http.HandleFunc("/api", func(w http.ResponseWriter, r *http.Request) {
		text, err := askServer(query(r, "path"))
		answer(w, text, err)
	})
	http.HandleFunc("/ready", health("ready"))
	http.HandleFunc("/live", health("live"))
	http.HandleFunc("/set", func(_ http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		for name, values := range r.URL.Query() {
			said[name] = values[0]
		}
	})
	http.HandleFunc("/print", func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(query(r, "text"))
	})
	http.HandleFunc("/exit", func(_ http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(query(r, "code"))
		os.Exit(code)
	})
	http.HandleFunc("/spend", func(_ http.ResponseWriter, r *http.Request) {
		megabytes, _ := strconv.Atoi(query(r, "mb"))
		for range megabytes {
			piece := make([]byte, 1<<20)
			for at := range piece {
				piece[at] = 1
			}
			taken = append(taken, piece)
		}
	})
	fmt.Println(http.ListenAndServe(":"+port, nil))
	os.Exit(1)
}
