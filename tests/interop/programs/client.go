package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	var body io.Reader
	if len(os.Args) > 3 {
		body, _ = os.Open(os.Args[3])
	}
	request, _ := http.NewRequest(os.Args[1], os.Args[2], body)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if os.Getenv("EXPECT") != "" {
		request.Header.Set("Expect", "100-continue")
		transport.ExpectContinueTimeout = time.Minute
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	io.Copy(os.Stdout, answer.Body)
	fmt.Fprintln(os.Stderr, "status", answer.StatusCode)
}
