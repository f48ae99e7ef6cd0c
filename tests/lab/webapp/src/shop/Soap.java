package shop;

/** The envelope of every response. */
final class Soap {
    private Soap() {}

    static String envelope(String content) {
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            + "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body>"
            + content + "</soap:Body></soap:Envelope>\n";
    }

    static String fault(String code, String reason) {
        return envelope("<soap:Fault><faultcode>" + code + "</faultcode><faultstring>" + text(String.valueOf(reason))
            + "</faultstring></soap:Fault>");
    }

    static String text(String raw) {
        return raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }
}
