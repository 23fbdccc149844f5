#!/usr/bin/env python3
"""Makes the spreadsheets of this folder anew, or those of the folder that is named, with the programs that people use.

Needs LibreOffice (`soffice`), openpyxl and XlsxWriter. The files are kept, because the tests have to pass without these programs.
"""

import datetime
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

import openpyxl
import xlsxwriter
from openpyxl.comments import Comment
from openpyxl.styles import PatternFill

HERE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
HERE = HERE if HERE.is_dir() else HERE.parent
ROWS = [
    ["MUG-01", "A white mug turns slowly on a wooden table", "16:9"],
    ["LAMP-02", "A brass lamp lights up in a dark room", "9:16"],
    ["VASE-03", "A blue vase fills with yellow flowers", "16:9"],
]


def book(name, sheets, work=None):
    """A workbook by openpyxl: each sheet a name, a state and rows."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, state, rows in sheets:
        sheet = made.create_sheet(title)
        sheet.sheet_state = state
        for row in rows:
            sheet.append(row)
    made.active = next(at for at, (_, state, _) in enumerate(sheets) if state == "visible")
    if work:
        work(made[sheets[-1][0]])
    made.save(HERE / name)


def simple(name, head, rows, work=None):
    book(name, [("Videos", "visible", [head, *rows])], work)


HEAD = ["SKU", "Prompt", "Aspect ratio"]


def by_openpyxl():
    cover = [["Spring campaign"], ["Please fill in the tab Videos."]]
    lists = [["16:9"], ["9:16"]]
    book("cover.xlsx", [("Read me", "visible", cover), ("Lists", "visible", lists), ("Videos", "visible", [HEAD, *ROWS])])
    book("hidden-sheet.xlsx", [("Lists", "hidden", lists), ("Videos", "visible", [HEAD, *ROWS])])

    def merge_title(sheet):
        sheet.merge_cells("A1:C1")

    title = [["Spring campaign 2026 – video list"], ["Status: draft, owner: marketing"], [], [], HEAD, *ROWS]
    book("title.xlsx", [("Videos", "visible", title)], merge_title)

    def hide(sheet):
        sheet.auto_filter.ref = "A1:C4"
        sheet.row_dimensions[3].hidden = True

    simple("filtered.xlsx", HEAD, ROWS, hide)

    def merge(sheet):
        sheet.merge_cells("C2:C3")

    models = [["a", "A dog runs on a beach", "beta-2.0-lite"], ["b", "A cat sleeps on a sofa", None], ["c", "A bird sings at dawn", "alpha-2"]]
    simple("merged.xlsx", ["id", "Prompt", "Model"], models, merge)

    times = [[sku, prompt, datetime.time(*map(int, shape.split(":")))] for sku, prompt, shape in ROWS]
    simple("times.xlsx", HEAD, times)

    def mask(sheet):
        for row in range(2, 5):
            sheet.cell(row, 1).number_format = "00000"

    simple("zeros.xlsx", ["Article number", "Prompt"], [[7, "A mug"], [42, "A lamp"], [1234, "A vase"]], mask)

    def money(sheet):
        for row in range(2, 4):
            sheet.cell(row, 3).number_format = "yyyy-mm-dd"
            sheet.cell(row, 4).number_format = '#,##0.00 "€"'

    dated = [["a", "A fair in the rain", datetime.date(2026, 12, 1), 1250.5], ["b", "A fair in the sun", datetime.date(2026, 12, 2), 99.9]]
    simple("dates.xlsx", ["id", "Prompt", "Due", "Budget"], dated, money)
    errors = [["a", "A mug", "#REF!", "x"], ["b", "#N/A", 5, "#DIV/0!"], ["c", "A vase", "#VALUE!", "x"]]
    simple("errors.xlsx", ["id", "Prompt", "Duration", "Notes"], errors)
    simple("without-results.xlsx", ["id", "Prompt", "Sum"], [["a", "A mug", "=1+1"], ["b", "A lamp", "=2+2"]])
    simple("without-results-used.xlsx", ["id", "Prompt", "Duration"], [["a", "A mug", "=4+4"], ["b", "A lamp", 5]])

    def paint(sheet):
        for row in range(5, 305):
            for column in range(1, 9):
                sheet.cell(row, column).fill = PatternFill("solid", "FFFF00")

    simple("painted.xlsx", [*HEAD, None, " "], ROWS, paint)
    states = [["a", "A dog runs", "ready"], ["b", "A cat sleeps", "Skip"], ["c", "A bird sings", "on hold"]]
    simple("status.xlsx", ["id", "Prompt", "Status"], states)
    words = [["a", "A dog runs", "Portrait"], ["b", "A cat sleeps", "landscape"]]
    simple("orientation.xlsx", ["id", "Prompt", "Orientation"], words)
    simple("two-prompts.xlsx", ["id", "Prompt", "Prompt"], [["a", "A dog", "A cat"]])
    simple("no-rows.xlsx", HEAD, [])
    clips = [[1, "A dog runs", 7, "dolly", "Ann"], [2, "A cat sleeps", 8, "pan", "Ben"]]
    simple("clips.xlsx", ["Clip", "Prompt", "Seed", "Camera", "Owner"], clips)

    def note(sheet):
        sheet["B2"].comment = Comment("Ask Ann whether this is blue.", "Ben")
        sheet["C2"].hyperlink = "https://x.example/board"

    simple("notes.xlsx", HEAD, ROWS, note)
    sizes = [["k1", "Red shirt on a table", "M"], ["k2", "Blue shirt on a chair", "L"]]
    simple("shirts.xlsx", ["SKU", "Description", "Size"], sizes)
    takes = [["a", "A dog runs", 3], ["b", "A cat sleeps", 2]]
    simple("takes.xlsx", ["id", "Prompt", "Versions"], takes)


def by_xlsxwriter():
    with xlsxwriter.Workbook(str(HERE / "table.xlsx")) as made:
        sheet = made.add_worksheet("Shots")
        sheet.add_table("B3:D6", {"data": ROWS, "columns": [{"header": name} for name in HEAD]})
    with xlsxwriter.Workbook(str(HERE / "formulas.xlsx")) as made:
        sheet = made.add_worksheet()
        for column, name in enumerate(["SKU", "Prompt", "Seconds"]):
            sheet.write(0, column, name)
        for row in (1, 2):
            sheet.write(row, 0, f"S-{row}")
            sheet.write_formula(row, 1, '="A mug at " & A2', None, f"A mug at noon, part {row}")
            sheet.write_formula(row, 2, "=4+1", None, 5)
    with xlsxwriter.Workbook(str(HERE / "since-1904.xlsx"), {"date_1904": True}) as made:
        sheet, day = made.add_worksheet(), made.add_format({"num_format": "dd/mm/yyyy"})
        sheet.write_row(0, 0, ["id", "Prompt", "Air date"])
        sheet.write_row(1, 0, ["a", "A dog runs in the snow"])
        sheet.write_datetime(1, 2, datetime.datetime(2026, 12, 24), day)
    with xlsxwriter.Workbook(str(HERE / "rich.xlsx")) as made:
        sheet, bold = made.add_worksheet(), made.add_format({"bold": True})
        sheet.write_row(0, 0, ["id", "Prompt"])
        sheet.write(1, 0, "a")
        sheet.write_rich_string(1, 1, "A ", bold, "red", " mug <turns> & stops\nin the sun")
    with xlsxwriter.Workbook(str(HERE / "not-calculated.xlsx")) as made:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, ["id", "Prompt", "Sum"])
        for row in (1, 2):
            sheet.write(row, 0, f"a{row}")
            sheet.write_formula(row, 1, f'="A mug, number " & A{row + 1}')
            sheet.write_formula(row, 2, "=1+1")
    with xlsxwriter.Workbook(str(HERE / "chart.xlsx")) as made:
        chart = made.add_chart({"type": "bar"})
        chart.add_series({"values": "=Shots!$C$2:$C$2"})
        made.add_chartsheet("Chart").set_chart(chart)
        shots, contacts = made.add_worksheet("Shots"), made.add_worksheet("Deliverables")
        shots.write_row(0, 0, ["Shot", "Prompt", "Length"])
        shots.write_row(1, 0, ["A-1", "A dog runs on a beach", 5])
        contacts.write_row(0, 0, ["Client", "Project", "Name", "Date", "Due", "Owner", "URL", "Notes"])
        contacts.write_row(1, 0, ["Acme", "Spring", "Ann", "x", "x", "x", "x", "x"])
    with xlsxwriter.Workbook(str(HERE / "pinned.xlsx")) as made:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, ["id", "Prompt"])
        sheet.write_row(1, 0, ["a", "A cat in the park"])
        sheet.insert_textbox("B2", "Ask Ann first")


def google():
    """As Google Sheets writes it: texts in the cells, and paths from the top of the archive."""
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rels = "http://schemas.openxmlformats.org/package/2006/relationships"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    hidden = ' hidden="1"'
    cell = '<c r="{}{}" t="inlineStr"><is><t>{}</t></is></c>'
    lines = "".join(
        f'<row r="{number}"{hidden if number == 4 else ""}>'
        + "".join(cell.format("ABC"[at], number, text) for at, text in enumerate(row))
        + "</row>"
        for number, row in enumerate([HEAD, *ROWS], 1)
    )
    with zipfile.ZipFile(HERE / "google.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        archive.writestr(
            "[Content_Types].xml",
            f'{head}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="{types}.worksheet+xml"/></Types>',
        )
        archive.writestr("_rels/.rels", f'{head}<Relationships xmlns="{rels}"><Relationship Id="rId1" Type="{kind}/officeDocument" Target="/xl/workbook.xml"/></Relationships>')
        archive.writestr("xl/workbook.xml", f'{head}<workbook xmlns="{main}" xmlns:r="{kind}"><sheets><sheet name="Sheet1 &amp; more" sheetId="1" r:id="rId3"/></sheets></workbook>')
        archive.writestr("xl/_rels/workbook.xml.rels", f'{head}<Relationships xmlns="{rels}"><Relationship Id="rId3" Type="{kind}/worksheet" Target="/xl/worksheets/sheet1.xml"/></Relationships>')
        archive.writestr("xl/worksheets/sheet1.xml", f'{head}<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>')


def office(profile, language, source, kind, *options):
    """Lets LibreOffice convert a file in a language, and returns the new one."""
    settings = profile / "user"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "registrymodifications.xcu").write_text(
        '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f'<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>{language}</value></prop></item></oor:items>'
    )
    command = ["soffice", "--headless", f"-env:UserInstallation=file://{profile}", *options, "--convert-to", kind, "--outdir", str(profile), str(source)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    return profile / (source.stem + "." + kind.split(":")[0])


# The number of an encoding, as LibreOffice has it.
UTF8, WINDOWS_1252, MAC_ROMAN, UTF16 = 76, 1, 2, 65535


def by_libreoffice():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number, name in enumerate(["cover", "filtered", "merged", "times", "zeros", "dates", "errors", "title", "status", "pinned"]):
            made = office(folder / str(number), "en-US", HERE / f"{name}.xlsx", "ods")
            shutil.copy(made, HERE / f"{name}.ods")
        for name in ["cover", "filtered", "merged", "dates", "errors"]:
            made = office(folder / f"xls-{name}", "en-US", HERE / f"{name}.xlsx", "xls")
            shutil.copy(made, HERE / f"{name}.xls")
        seconds = [[sku, prompt, 5.0 if at else 7.5] for at, (sku, prompt, _) in enumerate(ROWS)]
        for language, head, separator, encoding, name in [
            ("de-DE", ["Artikelnummer", "Beschreibung", "Länge"], 59, UTF8, "german.csv"),
            ("de-DE", ["Artikelnummer", "Beschreibung", "Größe"], 59, WINDOWS_1252, "german-1252.csv"),
            ("fr-FR", ["Référence", "Texte", "Durée"], 59, MAC_ROMAN, "french-mac.csv"),
            ("fr-FR", ["Référence", "Texte", "Durée"], 59, UTF8, "french.csv"),
            ("es-ES", ["Código", "Descripción", "Duración"], 59, UTF8, "spanish.csv"),
            ("it-IT", ["Codice", "Descrizione", "Durata"], 59, UTF8, "italian.csv"),
            ("pt-BR", ["Código", "Descrição", "Duração"], 59, UTF8, "portuguese.csv"),
            ("nl-NL", ["Artikelcode", "Omschrijving", "Duur"], 59, UTF8, "dutch.csv"),
            ("pl-PL", ["Kod", "Opis", "Czas"], 59, UTF8, "polish.csv"),
            ("en-US", ["SKU", "Prompt", "Duration"], 9, UTF16, "unicode-text.csv"),
        ]:
            sheet = folder / f"{name}.xlsx".replace(".csv", "")
            made = openpyxl.Workbook()
            for row in [head, *seconds]:
                made.active.append(row)
            for row in range(2, 5):
                made.active.cell(row, 3).number_format = "0.0"
            made.save(sheet)
            # The fields of the filter: as shown, and as the language of the program writes numbers.
            filter_name = f"csv:Text - txt - csv (StarCalc):{separator},34,{encoding},1,,0,false,true"
            shutil.copy(office(folder / f"{name}.profile", language, sheet, filter_name), HERE / name)
        german = folder / "laenge.csv"
        german.write_text("Produkt;Prompt;Länge;Format\nBecher;Ein Becher dreht sich;5,0;16:9\nLampe;Eine Lampe leuchtet;7,5;9:16\n", "utf-8")
        profile = folder / "ods"
        made = office(profile, "de-DE", german, "ods:calc8", f"--infilter=CSV:59,34,{UTF8}")
        shutil.copy(made, HERE / "german.ods")


def text(name, lines, encoding="utf-8", end="\n"):
    (HERE / name).write_bytes((end.join(lines) + end).encode(encoding))


def renamed(name, source, rename):
    """A workbook whose parts have other names than others call them by."""
    with zipfile.ZipFile(HERE / source) as old, zipfile.ZipFile(HERE / name, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(rename(part), old.read(part))


def record(kind, data=b""):
    """A record of an .xlsb: type and length in seven bits a byte."""
    made = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    length = len(data)
    while length >= 0x80:
        made, length = made + bytes([length & 0x7F | 0x80]), length >> 7
    return made + bytes([length]) + data


def wide(string):
    return struct.pack("<I", len(string)) + string.encode("utf-16-le")


def binary_workbook(name, rows, hidden, merged):
    """An .xlsb with one sheet: strings and numbers, a hidden row, and a cell over two rows."""
    sheet = record(0x81) + record(0x94, struct.pack("<IIII", 0, len(rows) - 1, 0, 2)) + record(0x91)
    for row, cells in enumerate(rows):
        sheet += record(0x00, struct.pack("<IIHBBBI", row, 0, 300, 0, 0x10 if row == hidden else 0, 0, 0))
        for column, cell in enumerate(cells):
            place = struct.pack("<II", column, 0)
            if isinstance(cell, str):
                sheet += record(0x06, place + wide(cell))
            elif cell is not None:
                sheet += record(0x05, place + struct.pack("<d", cell))
    sheet += record(0x92) + record(0x1B1, struct.pack("<I", 1)) + record(0xB0, struct.pack("<IIII", *merged)) + record(0x1B2)
    sheets = record(0x8F) + record(0x9C, struct.pack("<II", 0, 1) + wide("rId1") + wide("Videos")) + record(0x90)
    book = record(0x83) + record(0x99, bytes(12)) + sheets + record(0x9D, bytes(26)) + record(0x84)
    of_package = "http://schemas.openxmlformats.org/package/2006"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    with zipfile.ZipFile(HERE / name, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("[Content_Types].xml", f'<Types xmlns="{of_package}/content-types"/>')
        target = f'<Relationship Id="rId1" Type="{kind}" Target="worksheets/sheet1.bin"/>'
        made.writestr("xl/_rels/workbook.bin.rels", f'<Relationships xmlns="{of_package}/relationships">{target}</Relationships>')
        made.writestr("xl/workbook.bin", book)
        made.writestr("xl/worksheets/sheet1.bin", sheet + record(0x82))


def by_hand():
    """As other programs write them, byte by byte."""
    renamed("backslashes.xlsx", "status.xlsx", lambda part: part.replace("/", "\\"))
    renamed("capitals.xlsx", "status.xlsx", lambda part: part.replace("sheet1", "Sheet1"))
    seconds = [[sku, prompt, 5.0 if at == 1 else None] for at, (sku, prompt, _) in enumerate(ROWS, 1)]
    binary_workbook("binary.xlsb", [["SKU", "Prompt", "Seconds"], *seconds], hidden=2, merged=(1, 2, 2, 2))
    text("chinese-gbk.csv", ["id,提示词", "a1,一只红狐狸在清晨的雪地里奔跑，镜头跟随", "a2,城市夜景，霓虹灯倒映在雨后的街道上"], "gbk", "\r\n")
    text("polish-1250.csv", ["id;Opis", "a1;Lis biegnie przez śnieg o świcie, żółte światło", "a2;Łódź płynie wolno"], "cp1250", "\r\n")
    text("russian-1251.csv", ["id;Описание", "a1;Лиса бежит по снегу на рассвете", "a2;Лодка медленно плывёт"], "cp1251", "\r\n")
    text("utf32.csv", ["id,prompt", "a,A mug for Zoë"], "utf-32")
    long = "What the viewer should notice in the opening picture"
    text("long-header.csv", [",,", '"Autumn shots, as agreed in September",,', f"Region,Setting,{long}", "North,harbour at dawn,Gulls over the water", "South,street at night,A tram in the rain"])
    text("json.xlsx", ['[{ "id": "a", "prompt": "A mug" }]'])
    text("google.csv", ["SKU,Prompt,Aspect ratio", 'MUG-01,"A mug, turning",16:9', "LAMP-02,A lamp,9:16"], end="\r\n")
    text("numbers.csv", ["Table 1", "SKU,Prompt,Aspect ratio", "MUG-01,A mug turns,16:9", "LAMP-02,A lamp shines,9:16"])
    text("excel-utf16.csv", ["SKU\tPrompt", "MUG-01\tA mug for Zoë", "LAMP-02\tA lamp"], "utf-16", "\r\n")
    text("utf16-without-mark.csv", ["SKU,Prompt", "MUG-01,A mug for Zoë", "LAMP-02,A lamp"], "utf-16-le")
    text("sep.csv", ["sep=;", "SKU;Prompt", "MUG-01;A mug, turning", "LAMP-02;A lamp, shining"], end="\r\n")
    text("title.csv", ["Videos of spring,,", ",,", "Product,Prompt,Price", "Mug,A mug turns,3", "Lamp,A lamp shines,4"])
    text("headerless.csv", ["A river at dawn with birds above it,16:9", "A forest in the fog with a fox,9:16"])
    text("commas.csv", ["Nr;Prompt;Format", "1;Close shot, product on desk, no text;16:9", "2;A boat at sea, slow action, wide scene;9:16", "3;A cup, steam rises;16:9"])
    text("headerless-shots.csv", ['shot-1,"A cat runs in the garden at dawn, slow motion, wide",16:9', 'shot-2,"A dog runs in the garden at dawn, slow motion, wide",16:9'])
    text("czech.csv", ["Kod,Popis,Stav", "shot-1,Product on table,no", "shot-2,Model in action,done", "x-3,Cup on shelf,done"])
    text("german-errors.csv", ["id;Prompt", "a;#WERT!", "b;#NV", "c;A cup on a shelf"])
    text("chinese.csv", ["编号,提示词,画面比例,时长", "a1,一只狗在海滩上奔跑,16：9,5", "a2,一只猫在沙发上睡觉,9：16,6"])
    text("japanese.csv", ["番号,プロンプト,縦横比", "A-1,犬が浜辺を走る,16:9", "A-2,猫がソファで眠る,9:16"])
    text("korean.csv", ["번호,프롬프트,비율", "A-1,개가 해변을 달린다,16:9", "A-2,고양이가 소파에서 잔다,9:16"])
    text("report.csv", ["id,prompt,aspect_ratio", "a,\"'=A mug, and a lamp\",'16:9", "b,'-5 degrees in the street,'9:16"])
    text("square.csv", ["id,Prompt,Format", "a,A mug turns,1:1", "b,A lamp shines,16:9"])
    text("sizes.csv", ["id,Prompt,Size,Duration", "a,A mug turns,1280x720,5", "b,A lamp shines,720x1280,11"])
    text("page.xls", ["<html><body><table><tr><td>id</td><td>Prompt</td></tr></table></body></html>"])
    (HERE / "page.xlsx").write_bytes((HERE / "page.xls").read_bytes())


if __name__ == "__main__":
    for old in HERE.iterdir():
        if old.suffix in {".xlsx", ".ods", ".csv", ".xls", ".xlsb"}:
            old.unlink()
    for make in (by_openpyxl, by_xlsxwriter, google, by_libreoffice, by_hand):
        make()
    print(len([made for made in HERE.iterdir() if made.suffix not in {".py", ".snap"}]), "sheets", file=sys.stderr)
