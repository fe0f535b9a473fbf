import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;

public class ModernClient {
    public static void main(String[] args) throws Exception {
        var body = args.length > 2 ? BodyPublishers.ofFile(Path.of(args[2])) : BodyPublishers.noBody();
        var request = HttpRequest.newBuilder(URI.create(args[1]))
            .method(args[0], body)
            .header("Authorization", "Bearer " + System.getenv("KEY"))
            .expectContinue(System.getenv("EXPECT") != null)
            .build();
        var client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build();
        var answer = client.send(request, BodyHandlers.ofInputStream());
        byte[] piece = new byte[65536];
        int n;
        while ((n = answer.body().read(piece)) >= 0) {
            System.out.write(piece, 0, n);
            System.out.flush();
        }
        System.err.println("status " + answer.statusCode());
    }
}
