package shop;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import javax.naming.NamingException;
import javax.sql.DataSource;
import org.xml.sax.SAXException;

/** A SOAP 1.1 service: a quote for a customer from three database queries. */
public class QuoteService extends HttpServlet {
    private DataSource source;

    @Override
    public void init() throws ServletException {
        try {
            source = Database.source();
        } catch (NamingException error) {
            throw new ServletException("the shop's database is not configured", error);
        }
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        try {
            send(response, 200, quote(QuoteRequest.read(request.getInputStream())));
        } catch (SAXException | IllegalArgumentException error) {
            send(response, 500, Soap.fault("soap:Client", error.getMessage()));
        } catch (SQLException error) {
            log("a query failed", error);
            send(response, 500, Soap.fault("soap:Server", error.getMessage()));
        }
    }

    private String quote(QuoteRequest asked) throws SQLException {
        try (Connection connection = source.getConnection()) {
            Customer customer = customer(connection, asked.customer());
            Article article = article(connection, asked.article());
            Sales sales = sales(connection, asked.customer());
            long cents = (long) article.cents() * asked.quantity() * (100 - customer.discount()) / 100;
            return Soap.envelope(
                "<quote xmlns=\"urn:shop\">"
                + "<customer id=\"" + asked.customer() + "\" discount=\"" + customer.discount() + "\">"
                + Soap.text(customer.name()) + "</customer>"
                + "<article id=\"" + asked.article() + "\" cents=\"" + article.cents() + "\">"
                + Soap.text(article.title()) + "</article>"
                + "<sales count=\"" + sales.count() + "\" cents=\"" + sales.cents() + "\"/>"
                + "<cents>" + cents + "</cents>"
                + "</quote>");
        }
    }

    private record Customer(String name, int discount) {}

    private record Article(String title, int cents) {}

    private record Sales(int count, long cents) {}

    private static Customer customer(Connection connection, int id) throws SQLException {
        try (PreparedStatement query = query(connection, "SELECT name, discount FROM customer WHERE id = ?", id);
                ResultSet rows = first(query, "customer", id)) {
            return new Customer(rows.getString(1), rows.getInt(2));
        }
    }

    private static Article article(Connection connection, int id) throws SQLException {
        try (PreparedStatement query = query(connection, "SELECT title, cents FROM article WHERE id = ?", id);
                ResultSet rows = first(query, "article", id)) {
            return new Article(rows.getString(1), rows.getInt(2));
        }
    }

    private static Sales sales(Connection connection, int customer) throws SQLException {
        String sql = "SELECT COUNT(*), SUM(sale.quantity * article.cents) FROM sale"
            + " JOIN article ON article.id = sale.article WHERE sale.customer = ?";
        try (PreparedStatement query = query(connection, sql, customer);
                ResultSet rows = first(query, "customer", customer)) {
            return new Sales(rows.getInt(1), rows.getLong(2));
        }
    }

    private static PreparedStatement query(Connection connection, String sql, int id) throws SQLException {
        PreparedStatement query = connection.prepareStatement(sql);
        query.setInt(1, id);
        return query;
    }

    private static ResultSet first(PreparedStatement query, String what, int id) throws SQLException {
        ResultSet rows = query.executeQuery();
        if (!rows.next()) {
            throw new IllegalArgumentException("there is no " + what + " " + id);
        }
        return rows;
    }

    private static void send(HttpServletResponse response, int status, String xml) throws IOException {
        byte[] body = xml.getBytes(StandardCharsets.UTF_8);
        response.setStatus(status);
        response.setContentType("text/xml;charset=UTF-8");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
