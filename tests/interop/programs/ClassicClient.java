import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;

public class ClassicClient {
    public static void main(String[] args) throws Exception {
        var connection = (HttpURLConnection) new URL(args[1]).openConnection();
        connection.setRequestMethod(args[0]);
        connection.setRequestProperty("Authorization", "Bearer " + System.getenv("KEY"));
        if (System.getenv("EXPECT") != null)
            connection.setRequestProperty("Expect", "100-continue");
        if (args.length > 2) {
            connection.setDoOutput(true);
            connection.setFixedLengthStreamingMode(Files.size(Path.of(args[2])));
            try (var out = connection.getOutputStream()) {
                Files.copy(Path.of(args[2]), out);
            }
        }
        int status = connection.getResponseCode();
        InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream();
        byte[] piece = new byte[65536];
        int n;
        while ((n = in.read(piece)) >= 0) {
            System.out.write(piece, 0, n);
            System.out.flush();
        }
        System.err.println("status " + status);
    }
}
