"""One page that tells of many runs: a file that opens in any browser, without a server and without the internet."""

from prequential.report.page.build import page_of
from prequential.report.page.write import require_page_path, write_report

__all__ = ["page_of", "require_page_path", "write_report"]
