package shop;

import java.io.IOException;
import java.io.InputStream;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.w3c.dom.NodeList;
import org.xml.sax.ErrorHandler;
import org.xml.sax.SAXException;
import org.xml.sax.helpers.DefaultHandler;

/** A client's request: customer, article and quantity. */
record QuoteRequest(int customer, int article, int quantity) {
    private static final ErrorHandler QUIET = new DefaultHandler();

    /** Reads a SOAP envelope; the message of an exception describes its fault. */
    static QuoteRequest read(InputStream body) throws SAXException, IOException {
        Document document = builder().parse(body);
        return new QuoteRequest(
            number(document, "customer"), number(document, "article"), number(document, "quantity"));
    }

    private static DocumentBuilder builder() {
        try {
            DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
            factory.setNamespaceAware(true);
            factory.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            DocumentBuilder builder = factory.newDocumentBuilder();
            builder.setErrorHandler(QUIET);
            return builder;
        } catch (ParserConfigurationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static int number(Document document, String name) {
        NodeList found = document.getElementsByTagNameNS("urn:shop", name);
        if (found.getLength() != 1) {
            throw new IllegalArgumentException("a request has one <" + name + ">, not " + found.getLength());
        }
        return Integer.parseInt(found.item(0).getTextContent().strip());
    }
}
