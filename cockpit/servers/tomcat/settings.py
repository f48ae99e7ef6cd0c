"""Tomcat's settings in /etc/default."""

from cockpit.servers.settings import Impact, KnownSetting

SETTINGS = {
    "JAVA_OPTS": KnownSetting(
        "options of the JVM: -Xmx bounds the heap; a small heap collects often, a large one takes memory",
        impact=Impact.RESTART,
    ),
}
