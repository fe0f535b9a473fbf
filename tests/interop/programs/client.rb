require "net/http"

method, url, file = ARGV
$stdout.binmode
$stdout.sync = true

# Net::HTTP follows no redirect by itself.
def ask(method, uri, file)
  Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https") do |http|
    request = Net::HTTP.const_get(method.capitalize).new(uri)
    request["Authorization"] = "Bearer " + ENV["KEY"]
    if file
      request.body_stream = File.open(file, "rb")
      request["Content-Length"] = File.size(file).to_s
      request["Content-Type"] = "application/octet-stream"
      request["Expect"] = "100-continue" if ENV["EXPECT"]
    end
    http.continue_timeout = 60 if ENV["EXPECT"]
    http.request(request) { |answer| answer.read_body { |piece| $stdout.write(piece) } }
  end
end

answer = ask(method, URI(url), file)
answer = ask(method, URI(answer["Location"]), nil) if answer.is_a?(Net::HTTPRedirection)
warn "status #{answer.code}"
