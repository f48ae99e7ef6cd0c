"""origin1: Apache as the origin of the caches, with 15000 images of 3 kB and one of 6,224,340 bytes."""

from tests.lab.apache import apache
from tests.lab.services import DOCUMENTS, File, Fill

IMAGES = Fill(f"{DOCUMENTS}/img/{{:05}}.jpg", 3072, 15000)
LARGE_IMAGE = Fill(f"{DOCUMENTS}/img/large.jpg", 6_224_340)

# One day: every cache may store the images.
EXPIRES = 'ExpiresActive on\nExpiresByType image/jpeg "access plus 1 day"\n'

APACHE = apache(
    "event",
    modules=("expires",),
    files=(File("/etc/apache2/mods-available/expires.conf", EXPIRES),),
    fills=(IMAGES, LARGE_IMAGE),
)
