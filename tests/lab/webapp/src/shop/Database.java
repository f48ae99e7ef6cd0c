package shop;

import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import javax.naming.InitialContext;
import javax.naming.NamingException;
import javax.sql.DataSource;

/** The shop's tables, created with the same rows at every start of the application. */
public class Database implements ServletContextListener {
    static final int CUSTOMERS = 200;
    static final int ARTICLES = 100;
    static final int SALES = 5000;

    static DataSource source() throws NamingException {
        return (DataSource) new InitialContext().lookup("java:comp/env/jdbc/shop");
    }

    @Override
    public void contextInitialized(ServletContextEvent event) {
        try (Connection connection = source().getConnection()) {
            makeTables(connection);
            fillCustomers(connection);
            fillArticles(connection);
            fillSales(connection);
        } catch (NamingException | SQLException error) {
            throw new IllegalStateException("the shop's tables cannot be made", error);
        }
    }

    private static void makeTables(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(40), discount INT)");
            statement.execute("CREATE TABLE article (id INT PRIMARY KEY, title VARCHAR(40), cents INT)");
            statement.execute("CREATE TABLE sale (id INT PRIMARY KEY, customer INT, article INT, quantity INT)");
            statement.execute("CREATE INDEX sale_customer ON sale (customer)");
        }
    }

    private static void fillCustomers(Connection connection) throws SQLException {
        try (PreparedStatement row = connection.prepareStatement("INSERT INTO customer VALUES (?, ?, ?)")) {
            for (int id = 1; id <= CUSTOMERS; id++) {
                row.setInt(1, id);
                row.setString(2, "Customer " + id);
                row.setInt(3, id % 5 * 2);
                row.addBatch();
            }
            row.executeBatch();
        }
    }

    private static void fillArticles(Connection connection) throws SQLException {
        try (PreparedStatement row = connection.prepareStatement("INSERT INTO article VALUES (?, ?, ?)")) {
            for (int id = 1; id <= ARTICLES; id++) {
                row.setInt(1, id);
                row.setString(2, "Article " + id);
                row.setInt(3, 250 + 37 * id);
                row.addBatch();
            }
            row.executeBatch();
        }
    }

    private static void fillSales(Connection connection) throws SQLException {
        try (PreparedStatement row = connection.prepareStatement("INSERT INTO sale VALUES (?, ?, ?, ?)")) {
            for (int id = 0; id < SALES; id++) {
                row.setInt(1, id);
                row.setInt(2, id % CUSTOMERS + 1);
                row.setInt(3, id * 7 / 3 % ARTICLES + 1);
                row.setInt(4, id % 9 + 1);
                row.addBatch();
            }
            row.executeBatch();
        }
    }
}
