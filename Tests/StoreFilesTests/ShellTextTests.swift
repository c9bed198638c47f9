import Platform
import SystemPackage
import TestSupport
import Testing

@Suite("Paths as words of a shell, and numbers as people read them")
struct ShellTextTests {
  @Test(
    "A shell reads each path as it is",
    arguments: [
      "/plain/App.sqlite", "with space", "it's", "$HOME `id` $(id)", "a\"b\\c", "line\nend", "\u{1B}[2J", "-rf", "ü/ö",
      "*?[a]", "~",
    ])
  func shell(text: String) throws {
    let path = FilePath(text)
    let word = shellQuoted(path)
    #expect(!word.unicodeScalars.contains { $0.value < 0x20 }, "nothing in it steers a terminal")
    let result = try ChildProcess.run("/bin/bash", ["-c", "printf %s \(word)"], input: "", in: FilePath("/"))
    let read = result.output.hasPrefix("./") && text.hasPrefix("-") ? String(result.output.dropFirst(2)) : result.output
    #expect(read == text)
  }

  @Test("Thousands are set off by commas")
  func numbers() {
    #expect(
      [0, 7, 999, 1_000, 12_345, 1_234_567, -1_000].map { grouped($0) }
        == ["0", "7", "999", "1,000", "12,345", "1,234,567", "-1,000"])
    #expect(grouped(Int64.min) == "-9,223,372,036,854,775,808")
    #expect(counted(1, "record") == "1 record" && counted(2_000, "entity", "entities") == "2,000 entities")
  }
}
