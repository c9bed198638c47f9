import Foundation
import SystemPackage
import TestSupport
import Testing

/// Ctrl-C at a question is an answer: no.
struct QuestionTests {
  /// Presses Ctrl-C once where a verb asks, with its input open.
  private func interrupted(_ desk: Desk, _ arguments: [String], at question: String) throws -> Desk.Result {
    let child = try ChildProcess(ChildProcess.tool, arguments, in: desk.folder.path, home: desk.folder.path)
    #expect(try child.waits(forError: question))
    child.interrupt()
    // With its input open: an input that ends is an answer of its own.
    return try child.wait(seconds: 20)
  }

  @Test func anExportIsCancelledAndLeavesNothing() throws {
    let desk = try Desk()
    let store = try desk.makeOldStore()
    let before = try FolderContents(of: desk.folder.path)
    let result = try interrupted(
      desk, ["export", store, "-o", "Report.tar.gz", "--level", "facts"], at: "Write the bundle? [y/N]")
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.hasSuffix("Cancelled: nothing was written.\n"), "\(result.errors)")
    #expect(try FolderContents(of: desk.folder.path) == before)
  }

  @Test func nothingIsDiscarded() throws {
    let desk = try Desk()
    try desk.makeDamagedStore()
    #expect(try desk.lazaret("quarantine", "add", desk.store).status == 0)
    let before = try FolderContents(of: desk.folder.path)
    let result = try interrupted(desk, ["quarantine", "discard", try desk.quarantinedID()], at: "for good? [y/N]")
    #expect(result.status == 1 && result.errors.hasSuffix("Cancelled: nothing was removed.\n"), "\(result.errors)")
    #expect(try FolderContents(of: desk.folder.path) == before)
  }

  @Test func nothingIsSent() throws {
    let desk = try Desk()
    let bundle = try desk.makeBundle()
    let result = try interrupted(desk, ["send", bundle, "--to", "http://127.0.0.1:9/a"], at: "Send it? [y/N]")
    #expect(result.status == 1 && result.errors.hasSuffix("Cancelled: nothing was sent.\n"), "\(result.errors)")
  }
}
