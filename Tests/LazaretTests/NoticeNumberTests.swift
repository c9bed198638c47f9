import Foundation
import Lazaret
import Platform
import SystemPackage
import Testing

/// Notices of salvages say in every language what they say in English, in words that every user knows.
struct NoticeNumberTests {
  /// The notice of a salvage with an account, as a receipt has it.
  private func notice(_ salvage: String) throws -> Notice {
    var event = OpeningEvent(
      .salvage, at: Timestamp(secondsSince1970: 0), path: FilePath("/App.sqlite"), words: "",
      reason: Receipt.Reason(code: "header-damaged", words: "It is damaged."))
    event.salvage = try JSONDecoder().decode(OpeningSalvage.self, from: Data(salvage.utf8))
    return Notice(try #require(OpeningNotice.about([event], report: nil)), [event])
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

  /// Words of databases, and of what is doubtful to us, that no user has to know.
  private static let terms = [
    "record", "row", "table", "column", "index", "page", "entity", "doubtful", "share", "%", "unknown number", "pair",
    "reference", "quarantine", "(",
  ]

  private let losses = """
    {"entity": "Car", "property": "color", "count": 13, "text": ""}, {"entity": "Van", "count": 11, "text": ""}
    """

  @Test func noNoticeOfASalvageHasNumbersOrTermsOfDatabases() throws {
    let accounts = [
      account(lost: 7, basis: "cells", doubtful: 3, valuesSetAside: 5, losses: losses), account(valuesSetAside: 5),
      account(losses: losses), account(), account(lacksDetails: false), account(basis: "unknown"),
      account(lost: 900, basis: "cells"),
    ]
    for text in accounts {
      let notice = try notice(text)
      #expect(notice.counts.recovered == 90)
      for language in Notice.Language.allCases {
        let message = notice.translated(into: language).message
        let digits = message.filter { $0.isNumber }
        #expect(digits.isEmpty, "\(message)")
      }
      for term in Self.terms { #expect(!notice.message.lowercased().contains(term), "\(notice.message)") }
    }
  }

  /// What is said in English is what the catalogue has for it.
  @Test func theCatalogueSaysTheSame() throws {
    for text in [account(), account(lacksDetails: false), account(lost: 900, basis: "cells")] {
      let notice = try notice(text)
      let english = notice.translated(into: .english)
      #expect(notice.title == english.title && notice.message == english.message)
    }
  }

  @Test func mostIsSaidOfWhatIsKnownToBeMost() throws {
    #expect(
      try notice(account(lost: 7, basis: "cells")).message.contains("Most of your data was recovered. Some entries"))
    for other in [account(lost: 900, basis: "cells"), account(basis: "unknown")] {
      let notice = try notice(other)
      #expect(notice.message.contains("Part of your data was recovered.") && !notice.counts.hasMost)
      #expect(notice.translated(into: .german).message.contains("Ein Teil Ihrer Daten"))
    }
  }

  @Test func nothingIsCalledMissingWhereNothingIs() throws {
    let whole = try notice(account(lacksDetails: false))
    #expect(whole.key == "lazaret.notice.salvaged-unconfirmed" && whole.title == "Your data was recovered")
    #expect(whole.message.contains("Please check that it is complete."))
    for word in ["lost", "in part", "Most"] { #expect(!whole.message.contains(word), "\(whole.message)") }
    #expect(whole.translated(into: .german).message.contains("Bitte prüfen Sie"))
    #expect(whole.translated(into: .french).title == "Vos données ont été récupérées")
    for other in [account(lacksDetails: true), account(), account(lost: 1, basis: "cells", lacksDetails: false)] {
      #expect(try notice(other).key == "lazaret.notice.salvaged-with-losses")
    }
  }
}
