/** The rules of the local provider, sentence by sentence: what becomes a fact, in which words, and what does not. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { extraction } from "../../src/adapters/LocalExtractor.ts"
import type { Message } from "../../src/domain/Command.ts"
import { Fact, planMaxSteps } from "../../src/domain/Plan.ts"

const factsOf = (messages: ReadonlyArray<Message>, related: ReadonlyArray<string> = []): ReadonlyArray<Fact> => {
  const shown = related.map((text) => ({ text }))
  const steps = extraction({ messages, related: shown, instructions: null, eventDate: null })
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
const user = (content: string): Message => ({ role: "user", content })
const told = (content: string) => factsOf([user(content)]).map(({ text }) => text)

/** What is said, and the facts that it gives. */
const tables: Readonly<Record<string, ReadonlyArray<readonly [string, ...ReadonlyArray<string>]>>> = {
  "the user is the subject, and the verb agrees": [
    ["I moved to Paris last month.", "User moved to Paris last month."],
    ["I'm allergic to peanuts", "User is allergic to peanuts."],
    ["I don't eat meat", "User doesn't eat meat."],
    ["We have two cats", "User has two cats."],
    ["I do yoga every morning.", "User does yoga every morning."],
    ["I go to the gym on Mondays.", "User goes to the gym on Mondays."],
    ["I watch movies in French.", "User watches movies in French."],
    ["I study at MIT.", "User studies at MIT."],
    ["I play chess.", "User plays chess."],
    ["I really love hiking!", "User really loves hiking."],
    ["I usually wake up at 6 a.m.", "User usually wakes up at 6 a.m."],
    ["I never drink alcohol.", "User never drinks alcohol."],
    ["I run and swim every day.", "User runs and swims every day."],
    ["I smoke.", "User smokes."],
    ["I hope to become a pilot.", "User hopes to become a pilot."],
    ["I google everything.", "User googles everything."],
    ["We got married in 2019.", "User got married in 2019."],
    ["I read a book every week.", "User reads a book every week."],
    ["I read War and Peace last year.", "User read War and Peace last year."],
    ["I haven't been to Spain.", "User hasn't been to Spain."],
    ["I can't eat dairy.", "User can't eat dairy."],
    ["I was born in Lisbon on 4 May 1990.", "User was born in Lisbon on 4 May 1990."],
    ["I used to live in Berlin.", "User used to live in Berlin."]
  ],
  "contractions are written out": [
    ["I've been vegetarian since 2010.", "User has been vegetarian since 2010."],
    ["I'd like to visit Japan one day.", "User would like to visit Japan one day."],
    ["I'll be in Rome next week.", "User will be in Rome next week."],
    ["We're expecting a baby in July!", "User is expecting a baby in July."],
    ["I\u2019m from Brazil originally.", "User is from Brazil originally."],
    ["im allergic to cats", "User is allergic to cats."],
    ["i dont like spicy food", "User doesn't like spicy food."]
  ],
  "pronouns follow": [
    ["My sister Ana is a doctor", "User's sister Ana is a doctor."],
    ["Our daughter Mia turned three.", "User's daughter Mia turned three."],
    ["I love my dog.", "User loves their dog."],
    ["I hurt myself last year.", "User hurt themselves last year."],
    ["The red car is mine.", "The red car is User's."],
    ["Ana is my sister.", "Ana is User's sister."],
    ["My sister gave me a book.", "User's sister gave User a book."],
    ["My boss knows I hate meetings.", "User's boss knows User hates meetings."],
    ["The doctor told me I have diabetes.", "The doctor told User that User has diabetes."],
    ["In my free time I play chess.", "In their free time User plays chess."],
    ["When I was a child, I lived in Rome.", "When User was a child, they lived in Rome."],
    ["I avoid sugar because I'm diabetic.", "User avoids sugar because they are diabetic."],
    ["My wife and I have three kids.", "User and their wife have three kids."],
    ["Me and my brother own a bakery.", "User and their brother own a bakery."]
  ],
  "a sentence with several clauses gives several facts": [
    ["Hi, I'm Ana and I'm 32.", "User's name is Ana.", "User is 32."],
    ["I'm 32 and live in Berlin.", "User is 32.", "User lives in Berlin."],
    ["I live in Paris but work in London.", "User lives in Paris.", "User works in London."],
    ["I love pizza and my wife loves sushi.", "User loves pizza.", "User's wife loves sushi."],
    ["I hate flying, so I take trains.", "User hates flying.", "User takes trains."],
    ["I moved to Oslo and then married an architect.", "User moved to Oslo.", "User married an architect."]
  ],
  "what belongs together stays together": [
    ["I like to swim and run.", "User likes to swim and run."],
    ["I love my wife and my kids.", "User loves their wife and their kids."],
    ["My dad and my mom are doctors.", "User's dad and User's mom are doctors."],
    ["I don't eat meat and drink alcohol.", "User doesn't eat meat and drink alcohol."],
    ["I'm married and divorced twice.", "User is married and divorced twice."],
    ["I speak English, Spanish and a bit of French.", "User speaks English, Spanish and a bit of French."],
    ["I see Dr. Lee at 4 p.m. in St. Louis.", "User sees Dr. Lee at 4 p.m. in St. Louis."]
  ],
  "openings and endings fall off": [
    ["Well, actually, I work as a nurse.", "User works as a nurse."],
    ["Thanks, I'm gluten free by the way.", "User is gluten free."],
    ["No, I have never smoked.", "User has never smoked."],
    ["- I play the violin \u{1f3bb}", "User plays the violin."],
    ["my email: ana@example.com", "User's email is ana@example.com."]
  ],
  "a question or a request takes nothing from what was told before it": [
    ["I live in Paris, can you recommend a restaurant?", "User lives in Paris."],
    ["I'm vegan so could you adapt it?", "User is vegan."],
    ["I'm vegetarian, please suggest a recipe.", "User is vegetarian."]
  ],
  "what is to be remembered is remembered": [
    ["Remember that I'm allergic to peanuts.", "User is allergic to peanuts."],
    ["Please remember my birthday is May 5th.", "User's birthday is May 5th."],
    ["Note that the office closes at 6pm.", "The office closes at 6pm."],
    ["Don't forget that I hate cilantro.", "User hates cilantro."],
    ["FYI, I work night shifts.", "User works night shifts."],
    ["You can call me Annie.", "User goes by Annie."]
  ],
  "a pronoun at the beginning stands for the person just spoken of": [
    [
      "My sister Ana is a doctor. She lives in Madrid.",
      "User's sister Ana is a doctor.",
      "User's sister Ana lives in Madrid."
    ],
    ["I have a dog named Rex. His toy is a ball.", "User has a dog named Rex.", "User's dog Rex's toy is a ball."],
    ["My brother is 40. She is nice.", "User's brother is 40."]
  ],
  "no question, request or order is a fact": [
    ["What should I cook tonight?"],
    ["Do I need a visa for Japan?"],
    ["do i need a visa"],
    ["Can you write me a poem?"],
    ["Please write a poem about my cat."],
    ["Write a poem about my cat."],
    ["Fix my code."],
    ["Tell me about my options."],
    ["I want a recipe for lasagna."],
    ["I need help with my homework."],
    ["I want to know how tall Everest is."],
    ["I'm looking for a good recipe."],
    ["Remember to buy milk."],
    ["Remember when we met?"]
  ],
  "no greeting, thanks or small talk is a fact": [
    ["Hello!"],
    ["Good morning"],
    ["Thank you so much for your help."],
    ["I'm fine, thanks."],
    ["I'm very tired today"],
    ["I see."],
    ["I agree."],
    ["I don't know."],
    ["I have to go."],
    ["I'll try that."],
    ["I like it."],
    ["I would never eat that."],
    ["I told you already."],
    ["My bad."],
    ["Me too."],
    ["lol"]
  ],
  "no guess, wish or condition is a fact": [
    ["I might move to Berlin."],
    ["Maybe I should get a dog."],
    ["If I had money I would buy a boat."],
    ["I wish I were taller."],
    ["Imagine I am a pirate."],
    ["I think so."],
    ["I think pineapple belongs on pizza."],
    ["I hope it works."]
  ],
  "nothing is a fact that is not about the user": [
    ["The capital of France is Paris."],
    ["It is raining."],
    ["You should try lasagna."],
    ["```\nI am code\n```"],
    ["> I am a quotation"],
    ["\"I live in Paris,\" he said."],
    ["She lives in Madrid."]
  ]
}

for (const [promise, rows] of Object.entries(tables)) {
  describe(promise, () => {
    for (const [said, ...facts] of rows) {
      it(said, () => {
        assert.deepStrictEqual(told(said), facts)
      })
    }
  })
}

const add = (text: string): Fact => ({ change: "add", text, target: null })
const update = (text: string, target: number): Fact => ({ change: "update", text, target })
const remove = (target: number): Fact => ({ change: "delete", text: null, target })
const none = (target: number): Fact => ({ change: "none", text: null, target })

/** What is said, what was known, and what changes. */
const changes: ReadonlyArray<readonly [string, ReadonlyArray<string>, ...ReadonlyArray<Fact>]> = [
  ["I moved to Paris.", ["User likes tea.", "User lives in Berlin."], update("User moved to Paris.", 1)],
  ["I live in Paris now", ["I live in Berlin"], update("User lives in Paris now.", 0)],
  ["I live in Paris, not London.", ["User lives in London."], update("User lives in Paris, not London.", 0)],
  ["I work at Acme now", ["User works at Google as an engineer."], update("User works at Acme now.", 0)],
  ["I work as a nurse.", ["User works at Google."], add("User works as a nurse.")],
  ["My favourite colour is green.", ["User's favorite color is blue."], update("User's favourite colour is green.", 0)],
  ["My favorite food is sushi.", ["User's favorite color is blue."], add("User's favorite food is sushi.")],
  ["I just turned 33", ["User is 32."], update("User just turned 33.", 0)],
  ["My birthday is on May 6th.", ["User's birthday is May 5th."], update("User's birthday is on May 6th.", 0)],
  ["My name is Ana.", ["User's name is Anna."], update("User's name is Ana.", 0)],
  ["I got divorced", ["User is married to Tom."], update("User got divorced.", 0)],
  ["My sister Ana lives in Madrid.", ["User lives in Berlin."], add("User's sister Ana lives in Madrid.")],
  ["I moved to Spain in 2010.", ["User lives in Berlin."], add("User moved to Spain in 2010.")],
  ["I moved to a new apartment.", ["User lives in Berlin."], add("User moved to a new apartment.")],
  ["I live in Paris.", ["User lives in Rome.", "User lives in Paris with Tom."], none(1)],
  ["I moved to Paris.", ["User lives in Paris."], none(0)],
  ["I really like tea!", ["User likes tea."], none(0)],
  ["I like tea. I like tea.", ["User likes tea."], none(0)],
  ["I don't like tea.", ["User likes tea."], add("User doesn't like tea.")],
  ["I like green tea.", ["User likes tea."], add("User likes green tea.")],
  ["I no longer work at Google.", ["User's son works at Google.", "User works at Google in London."], remove(1)],
  ["I don't live in Paris anymore.", ["User moved to Paris last month."], remove(0)],
  ["I stopped smoking.", ["User smokes."], remove(0)],
  ["I quit drinking coffee last year.", ["User drinks coffee every day."], remove(0)],
  ["I quit drinking coffee.", ["User doesn't drink coffee."], add("User quit drinking coffee.")],
  ["I stopped smoking.", ["User drinks coffee."], add("User stopped smoking.")],
  ["Forget that I live in Paris.", ["User lives in Paris."], remove(0)],
  ["Please forget my address.", ["User likes tea.", "User's address is 12 Main St."], remove(1)],
  ["Forget that I like tea.", ["User lives in Paris."]],
  ["Forget it.", ["User lives in Paris."]],
  ["I like dogs. I like dogs.", [], add("User likes dogs.")],
  ["I live in Rome. Actually, I moved to Oslo.", [], add("User moved to Oslo.")],
  ["I live in Rome. Actually, I moved to Oslo.", ["User lives in Bonn."], update("User moved to Oslo.", 0)],
  ["I like tea. I don't like tea anymore.", []],
  ["I live in Oslo. I don't live in Oslo anymore.", ["User lives in Bonn."], remove(0)]
]

describe("beside what is known already", () => {
  for (const [said, known, ...expected] of changes) {
    it(`${said} | ${known.join(" ")}`, () => {
      assert.deepStrictEqual(factsOf([user(said)], known), expected)
    })
  }
})

describe("a conversation", () => {
  it("of ten messages gives the memories that its reader would keep", () => {
    const conversation: ReadonlyArray<Message> = [
      { role: "system", content: "I am a helpful assistant. My name is Bot." },
      user("Hi there! I'm Maria, I'm 34 and I live in Lisbon with my husband Pedro."),
      { role: "assistant", content: "Nice to meet you, Maria! I love Lisbon. What do you do?" },
      { ...user("I work as a pediatric nurse at Santa Maria Hospital. I usually work night shifts."), name: "maria" },
      { role: "assistant", content: "That must be demanding. I'm here to help. Do you have children?" },
      user("Yes, we have two kids. My son Leo is 6 and my daughter Ines just started school. She loves dinosaurs!"),
      { role: "tool", content: "I found that my results are empty." },
      user("Can you suggest a dinner for tonight? I'm allergic to shellfish and Pedro doesn't eat pork."),
      { role: "assistant", content: "How about a chickpea stew? I think you will like it." },
      user("Sounds great, thanks! Remember that we eat early on Sundays. What time is it in Tokyo?")
    ]
    assert.deepStrictEqual(factsOf(conversation).map(({ text }) => text), [
      "User's name is Maria.",
      "User is 34.",
      "User lives in Lisbon with their husband Pedro.",
      "User works as a pediatric nurse at Santa Maria Hospital.",
      "User usually works night shifts.",
      "User has two kids.",
      "User's son Leo is 6.",
      "User's daughter Ines just started school.",
      "User's daughter Ines loves dinosaurs.",
      "User is allergic to shellfish and Pedro doesn't eat pork.",
      "User eats early on Sundays."
    ])
  })

  it("of any length offers no more than a plan holds, and the latest word is in it", () => {
    const messages = Array.from({ length: planMaxSteps + 20 }, (_, n) => user(`I own ${n + 1} books.`))
    const facts = factsOf(messages)
    assert.strictEqual(facts.length, planMaxSteps)
    assert.strictEqual(facts.at(-1)?.text, `User owns ${planMaxSteps + 20} books.`)
  })

  it.prop("of any words has an answer, made of facts that say something", [Schema.Array(Schema.String)], ([texts]) => {
    const words = "my we am live in Paris and , . ? remember that constructor __proto__ no longer User's is 3".split(" ")
    const mixed = texts.map((text, place) => `I ${text} ${words.slice(place % 7).join(` ${text}`)}`)
    const facts = factsOf([...texts, ...mixed].map(user), ["User lives in Rome.", "constructor", ""])
    for (const fact of facts) {
      assert.isTrue(Schema.is(Fact)(fact))
      assert.strictEqual(fact.text === null, fact.change === "none" || fact.change === "delete")
      if (fact.text !== null) assert.match(fact.text, /^\S.*\S\.$/su)
    }
  })
})
