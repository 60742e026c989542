"""Pictures that need no script: functions from results to pictures, each with its sentence, its legend and its data.

How a page uses them (`t` is its `Language`; import this package inside the function that draws: matplotlib is slow)::

    from align.reports import figures

    figures.difference_pictures(diff, t)  # forward and backward of the shown step (or the initial weights): tuple
    figures.training_pictures(diff, t)    # loss, gradient norm, learning rate where it differs: tuple
    figures.scale_picture(result, t)      # loss scales, skips and growths, of a DiffResult or an InspectResult
    figures.exponent_picture(result, t)   # magnitudes against the format's range, of a DiffResult or an InspectResult
    figures.heat_picture(diff, t)         # layers x steps, 7 classes of times the floor; for print and without script
    figures.run_pictures(inspect, t)      # loss, gradient norm and seconds of one run over its steps: tuple
    figures.accept_picture(accepted, t)   # loss, relative difference with limits, gradient norm of an AcceptResult

    figures.block(picture, t)             # Markup of all of it: caption, legend, figure, folded table; `{{ ... }}` it

A `Picture` always comes back. Without anything to draw `picture.drawn` is False and `picture.sentence` says why;
`block` then gives a paragraph. Pages that lay out by themselves take `picture.title`, `.sentence` (for the caption, it
says what is to be seen), `.svg`, `legend(picture.legend)` and `twin(picture, t)`.

Every picture begins its ids with its own `name`; a page may show each function's pictures once in each language. The
figures use the page's variables `--ink --muted --rule --band --reference --candidate --limit --error --inherited
--explained --page`, the heat map also `--heat-0` to `--heat-6`, the seven classes of times the floor.
"""

from __future__ import annotations

from align.reports.figures.acceptance import accept_picture, curves_picture
from align.reports.figures.along_the_run import difference_pictures
from align.reports.figures.exponents import exponent_picture
from align.reports.figures.heat_map import heat_picture
from align.reports.figures.loss_scale import scale_picture
from align.reports.figures.one_run import run_pictures
from align.reports.figures.picture import Picture, block, legend, twin
from align.reports.figures.two_runs import training_pictures

__all__ = [
    "Picture",
    "accept_picture",
    "block",
    "curves_picture",
    "difference_pictures",
    "exponent_picture",
    "heat_picture",
    "legend",
    "run_pictures",
    "scale_picture",
    "training_pictures",
    "twin",
]
