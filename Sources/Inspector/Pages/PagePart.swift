package import HTTPServer
import Platform
import SQLiteFormat

/// A part of a page that may fail without affecting the rest.
package struct PagePart<Value: Sendable>: Sendable {
  private let result: Result<Value, PageTrouble>

  private init(result: Result<Value, PageTrouble>) { self.result = result }

  /// Makes the part; its error is shown instead.
  package init(_ make: () throws -> Value) {
    do {
      result = .success(try make())
    } catch {
      result = .failure(PageTrouble(words: Problem(error)))
    }
  }

  package var value: Value? {
    guard case .success(let value) = result else { return nil }
    return value
  }

  package var problem: Problem? {
    guard case .failure(let failure) = result else { return nil }
    return failure.words
  }

  package func html(_ show: (Value) -> HTML) -> HTML {
    switch result {
    case .success(let value): show(value)
    case .failure(let failure): failure.words.note
    }
  }

  package func map<Other: Sendable>(_ change: (Value) -> Other) -> PagePart<Other> {
    PagePart<Other>(result: result.map(change))
  }
}

private struct PageTrouble: Error {
  var words: Problem
}

extension PagePart: Encodable where Value: Encodable {
  /// Encodes the part, or an object with `error`.
  package func encode(to encoder: any Encoder) throws {
    switch result {
    case .success(let value): try value.encode(to: encoder)
    case .failure(let failure): try encoder.encode(["error": failure.words])
    }
  }
}
