import ObjectStorage
import Platform
import Testing

struct XMLElementTests {
  private func element(_ text: String, _ limits: XMLElement.Limits = .init()) -> XMLElement? {
    XMLElement(Array(text.utf8), limits: limits)
  }

  @Test func answersAreRead() throws {
    let root = try #require(
      element(
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!-- one --><s:List xmlns:s="http://x/"><Empty/><Key>a&amp;&#x62;&#99;</Key><Key at="1">é</Key >
        <Owner><ID>1</ID></Owner></s:List>

        """))
    #expect(root.name == "List")
    #expect(root.all("Key").map(\.text) == ["a&bc", "é"])
    #expect(root.text("Empty") == "")
    #expect(root.text("ID") == nil)
    #expect(root.all("Owner").first?.text("ID") == "1")
  }

  @Test(arguments: [
    "", "text", "<a>", "<a></b>", "</a>", "<a/><b/>", "<a/>x", "x<a/>", "<a>&x;</a>", "<a>&#xD800;</a>", "<a>&amp</a>",
    "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "<a><![CDATA[x]]></a>", "<a", "<>", "< a/>", "<?x", "<!-- x",
    "<a>\u{0}<",
    "<a><b></a></b>",
  ])
  func othersAreNoDocuments(text: String) { #expect(element(text) == nil) }

  @Test func whatIsTooDeepOrTooMuchIsRefused() {
    func nested(_ depth: Int) -> String {
      String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
    }
    #expect(element(nested(8)) != nil)
    #expect(element(nested(9)) == nil)
    #expect(element(nested(500_000)) == nil)
    let many = "<l>" + String(repeating: "<a/>", count: 20) + "</l>"
    #expect(element(many, .init(elements: 21)) != nil)
    #expect(element(many, .init(elements: 20)) == nil)
    #expect(element(many, .init(bytes: many.utf8.count - 1)) == nil)
    #expect(XMLElement([0x3C, 0x61, 0x3E, 0xFF, 0x3C, 0x2F, 0x61, 0x3E]) == nil)
  }

  @Test func noBytesMakeTheReaderFail() {
    let text = Array("<?xml?><l><a>&amp;x</a><b/><!-- c --></l>".utf8)
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<20_000 {
      var bytes = text
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let place = Int.random(in: bytes.indices, using: &generator)
        switch Int.random(in: 0...2, using: &generator) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
        case 1: bytes.remove(at: place)
        default: bytes.insert(Array("<>/&;!?-".utf8).randomElement(using: &generator) ?? 0, at: place)
        }
      }
      // What it gives back is not judged: that it comes back at all is the test.
      let root = XMLElement(bytes)
      #expect(root.map { !$0.name.isEmpty } ?? true)
    }
  }
}
