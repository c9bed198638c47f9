import Foundation
import Lazaret
import Quarantine
import StoreCoordination
import StoreFiles
import SystemPackage
import Testing

/// Notices of salvages and repairs say in every language what they say in English.
struct NoticeNumberTests {
  /// The notice of a salvage with an account, as a receipt has it.
  private func notice(_ salvage: String) throws -> Lazaret.Notice {
    var event = OpeningEvent(
      .salvage, at: Timestamp(secondsSince1970: 0), path: FilePath("/App.sqlite"), words: "",
      reason: Receipt.Reason(code: "header-damaged", words: "It is damaged."))
    event.salvage = try JSONDecoder().decode(OpeningSalvage.self, from: Data(salvage.utf8))
    return Lazaret.Notice(try #require(StoreCoordination.Notice.about([event], report: nil)), [event])
  }

  private func account(
    lost: Int = 0, basis: String = "none", doubtful: Int = 0, valuesSetAside: Int? = nil, losses: String? = nil,
    lacksDetails: Bool? = nil
  ) -> String {
    let details = lacksDetails.map { "\"lacksDetails\": \($0), " } ?? ""
    return """
      {\(details)"state": "installed", "complete": false, "recovered": 90, "doubtful": \(doubtful), "lost": \(lost),
      "lostIsExact": true, "total": \(90 + lost), "percent": 90, "doubtfulReasons": {}, "entities": [{"name": "Car",
      "table": "ZCAR", "recovered": 90, "doubtful": \(doubtful), "lost": \(lost), "lostIsExact": true,
      "lostBasis": "\(basis)"}]\(valuesSetAside.map { ", \"valuesSetAside\": \($0)" } ?? "")\(losses.map {
      ", \"migrationLosses\": [\($0)]" } ?? "")}
      """
  }

  private func numbers(_ text: String) -> Set<String> {
    Set(text.split { !$0.isNumber }.map(String.init))
  }

  @Test func everyNumberOfASalvageIsInEveryLanguage() throws {
    let losses = """
      {"entity": "Car", "property": "color", "count": 13, "text": ""}, {"entity": "Van", "count": 11, "text": ""}
      """
    let cases = [
      (
        account(lost: 7, basis: "cells", doubtful: 3, valuesSetAside: 5, losses: losses),
        ["90", "7", "3", "5", "13", "11"]
      ),
      (account(valuesSetAside: 5), ["90", "5"]), (account(losses: losses), ["90", "13", "11"]), (account(), ["90"]),
    ]
    for (text, wanted) in cases {
      let notice = try notice(text)
      #expect(notice.key == "lazaret.notice.salvaged-with-losses")
      for language in Lazaret.Notice.Language.allCases {
        let message = notice.translated(into: language).message
        #expect(numbers(message).isSuperset(of: wanted), "\(language): \(message)")
      }
    }
  }

  @Test func nothingIsCalledMissingWhereNothingIs() throws {
    let whole = try notice(account(lacksDetails: false))
    #expect(whole.key == "lazaret.notice.salvaged-unconfirmed" && whole.title == "Your data was recovered")
    #expect(whole.message.contains("could not be confirmed") && whole.message.contains("90 records"))
    for word in ["missing", "lost", "in part"] { #expect(!whole.message.contains(word), "\(whole.message)") }
    #expect(
      whole.translated(into: .german).message.contains("90 Datensätze wurden wiederhergestellt. Es ließ sich nicht"))
    #expect(whole.translated(into: .french).title == "Vos données ont été récupérées")
    for other in [account(lacksDetails: true), account(), account(lost: 1, basis: "cells", lacksDetails: false)] {
      #expect(try notice(other).key == "lazaret.notice.salvaged-with-losses")
    }
  }

  @Test func whatIsNotKnownIsSaidInEveryLanguage() throws {
    let unknown = try notice(account(basis: "unknown"))
    #expect(unknown.message.contains("unknown number") && unknown.counts.hasUnknown)
    #expect(unknown.translated(into: .german).message.contains("nicht bekannt"))
    #expect(unknown.translated(into: .french).message.contains("pas connu"))
    let details = try notice(account())
    #expect(details.message.contains("Details"))
    #expect(details.translated(into: .german).message.contains("Einzelheiten"))
    #expect(details.translated(into: .french).message.contains("détails"))
  }
}
